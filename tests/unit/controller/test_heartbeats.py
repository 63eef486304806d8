# SPDX-License-Identifier: MIT
"""Heartbeats by the operator's own clock, whatever the nodes' clocks say."""

from __future__ import annotations

import pytest

from kubectl_pacto.controller.heartbeats import Heartbeats
from kubectl_pacto.kube.reflector import Broken
from kubectl_pacto.model.kube import Lease
from kubectl_pacto.model.snapshot import Heartbeat

KEY = ("pacto-node-agent", "node-a")


class Clock:
    """A wall clock that the test moves."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def beats(clock: Clock) -> Heartbeats:
    return Heartbeats(clock)


def lease(stamp: float | None) -> Lease:
    return Lease(*KEY, stamp, 90)


def test_a_first_lease_is_as_old_as_it_says_and_proves_nothing(beats: Heartbeats) -> None:
    beats.replace({KEY: lease(9_950.0)})
    assert beats.get("node-a") == Heartbeat(9_950.0, renewed=False, offset=0.0)
    assert beats.unproven() == 1
    assert beats.longest_interval() == 45


def test_a_first_lease_from_the_future_is_new_not_negative(beats: Heartbeats) -> None:
    beats.replace({KEY: lease(10_600.0)})
    assert beats.get("node-a") == Heartbeat(10_000.0, renewed=False)


def test_a_renewal_counts_from_when_it_was_seen_and_gives_the_offset(beats: Heartbeats, clock: Clock) -> None:
    beats.replace({KEY: lease(9_400.0)})  # the node's clock is ten minutes behind
    clock.now += 30
    beats.put(KEY, lease(9_430.0))
    assert beats.get("node-a") == Heartbeat(10_030.0, renewed=True, offset=600.0)
    assert beats.unproven() == 0


@pytest.mark.parametrize("skew", [-300.0, 300.0])
def test_a_skewed_node_is_fresh_while_it_renews_and_ages_after(
    beats: Heartbeats, clock: Clock, skew: float
) -> None:
    for _ in range(10):
        beats.put(KEY, lease(clock.now + skew))
        clock.now += 30
    found = beats.get("node-a")
    assert found is not None
    assert found.offset == -skew
    assert clock.now - found.seen_at == 30
    clock.now += 90
    found = beats.get("node-a")
    assert found is not None
    assert clock.now - found.seen_at == 120


def test_a_late_event_does_not_move_the_offset(beats: Heartbeats, clock: Clock) -> None:
    beats.put(KEY, lease(10_000.0))
    for late in (0.0, 5.0, 20.0):
        clock.now += 30
        beats.put(KEY, lease(clock.now - late))
    found = beats.get("node-a")
    assert found is not None
    assert found.offset == 0.0


def test_a_renewal_found_by_a_new_list_counts_from_when_it_was_made(beats: Heartbeats, clock: Clock) -> None:
    beats.put(KEY, lease(10_000.0))
    clock.now += 30
    beats.put(KEY, lease(10_030.0))
    clock.now += 100
    beats.replace({KEY: lease(10_060.0)})
    assert beats.get("node-a") == Heartbeat(10_060.0, renewed=True, offset=0.0)


def test_the_same_lease_again_is_no_renewal(beats: Heartbeats, clock: Clock) -> None:
    beats.replace({KEY: lease(10_000.0)})
    clock.now += 30
    beats.put(KEY, lease(10_000.0))
    assert beats.get("node-a") == Heartbeat(10_000.0, renewed=False)


def test_a_lease_that_is_gone_starts_anew(beats: Heartbeats, clock: Clock) -> None:
    beats.replace({KEY: lease(10_000.0)})
    clock.now += 30
    beats.put(KEY, lease(10_030.0))
    beats.drop(KEY)
    assert beats.get("node-a") is None
    beats.put(KEY, lease(10_030.0))
    found = beats.get("node-a")
    assert found is not None
    assert not found.renewed


def test_publishing_stands_in_only_for_a_missing_lease(beats: Heartbeats, clock: Clock) -> None:
    beats.published("node-b", 9_990.0)
    assert beats.get("node-b") == Heartbeat(9_990.0, renewed=False)
    clock.now += 30
    beats.published("node-b", 10_020.0)
    found = beats.get("node-b")
    assert found is not None
    assert found.renewed
    beats.put(KEY, lease(10_000.0))
    beats.published("node-a", 10_029.0)
    assert beats.get("node-a") == Heartbeat(10_000.0, renewed=False)


def test_a_broken_lease_is_none(beats: Heartbeats) -> None:
    beats.put(KEY, lease(10_000.0))
    beats.put(KEY, Broken("spec"))
    assert beats.lease("node-a") is None


def test_nodes_that_went_are_not_kept(beats: Heartbeats) -> None:
    for number in range(1000):
        beats.put(("ns", f"n{number}"), lease(10_000.0))
        beats.drop(("ns", f"n{number}"))
    beats.replace({})
    assert beats.unproven() == 0
