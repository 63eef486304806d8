# SPDX-License-Identifier: MIT
"""Outbound connections per peer: outcomes, times, what is open, and how long a peer is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.model.bounds import PEER_RETENTION_SECONDS
from kubectl_pacto.model.node import FailureReason, Peer
from pacto_agent.flows import Connection
from pacto_agent.peers import Peers
from tests.unit.agent.made import NOW, sums

DATABASE = Connection("10.0.0.1", 5432)
PENDING = Connection("10.0.0.1", 5432, pending=True)


def only(peers: Peers) -> Peer:
    """The one peer."""
    (peer,) = peers.snapshot()
    return peer


def test_outcomes_add_up_per_address_and_port() -> None:
    peers = Peers()
    peers.add(sums(succeeded=3, at=NOW), NOW)
    peers.add(sums(succeeded=2, failed=1, at=NOW + 1), NOW + 1)
    peers.add(sums(aborted=4), NOW + 2)
    peers.add(sums(port=6379, succeeded=1), NOW + 2)
    one, two = peers.snapshot()
    assert (one.succeeded, one.failed, one.aborted) == (5, 1, 4)
    assert (two.port, two.succeeded) == (6379, 1)


def test_times_are_the_latest_in_whatever_order_they_come() -> None:
    peers = Peers()
    for at in (NOW, NOW + 5, NOW + 2):
        peers.add(sums(succeeded=1, at=at), NOW + 6)
    assert only(peers).last_success == NOW + 5


def test_the_reason_is_the_last_failures() -> None:
    peers = Peers()
    peers.add(sums(failed=1, at=NOW + 5, reason=FailureReason.TIMEOUT), NOW + 6)
    peers.add(sums(failed=1, at=NOW + 2, reason=FailureReason.REFUSED), NOW + 6)
    assert only(peers).failure_reason is FailureReason.TIMEOUT
    peers.add(sums(failed=1, at=NOW + 5, reason=FailureReason.RESET), NOW + 6)
    assert only(peers).failure_reason is FailureReason.RESET, "of two at one time the one told later"


def test_a_success_does_not_take_a_failure_back() -> None:
    peers = Peers()
    peers.add(sums(failed=1, at=NOW), NOW)
    peers.add(sums(succeeded=1, at=NOW + 1), NOW + 1)
    assert (only(peers).failed, only(peers).failure_reason) == (1, FailureReason.REFUSED)


def test_an_abort_leaves_no_time_and_no_reason() -> None:
    peers = Peers()
    peers.add(sums(aborted=1), NOW)
    peer = only(peers)
    assert (peer.last_success, peer.last_failure, peer.failure_reason) == (None, None, FailureReason.NONE)


def test_a_peer_expires_ten_minutes_after_its_last_attempt() -> None:
    peers = Peers()
    peers.add(sums(succeeded=1, at=NOW), NOW)
    peers.prune(NOW + PEER_RETENTION_SECONDS)
    assert len(peers) == 1
    peers.prune(NOW + PEER_RETENTION_SECONDS + 0.001)
    assert len(peers) == 0


def test_an_abort_is_an_attempt_too() -> None:
    peers = Peers()
    peers.add(sums(succeeded=1, at=NOW), NOW)
    peers.add(sums(aborted=1), NOW + 300)
    peers.prune(NOW + PEER_RETENTION_SECONDS + 1)
    assert len(peers) == 1


def test_an_open_peer_stays_and_expires_once_it_is_closed() -> None:
    peers = Peers()
    peers.add(sums(succeeded=1, at=NOW), NOW)
    peers.set_open([DATABASE], NOW + 10)
    peers.prune(NOW + 10_000)
    assert only(peers).open == 1
    peers.set_open([], NOW + 10_000)
    peers.prune(NOW + 10_000 + PEER_RETENTION_SECONDS + 1)
    assert len(peers) == 0


def test_open_since_is_the_first_baseline_that_found_it_open() -> None:
    peers = Peers()
    for at in (NOW, NOW + 60):
        peers.set_open([DATABASE, DATABASE], at)
        assert (only(peers).open, only(peers).open_since) == (2, NOW)
    peers.set_open([], NOW + 120)
    assert (only(peers).open, only(peers).open_since) == (0, None)
    peers.set_open([DATABASE], NOW + 180)
    assert only(peers).open_since == NOW + 180


def test_an_unanswered_syn_at_a_resync_is_a_pending_failure_of_now_and_not_open() -> None:
    peers = Peers()
    peers.set_open([PENDING], NOW)
    peer = only(peers)
    assert (peer.last_failure, peer.failure_reason) == (NOW, FailureReason.PENDING)
    assert (peer.open, peer.failed) == (0, 0)
    peers.set_open([PENDING], NOW + 60)
    assert only(peers).last_failure == NOW + 60
    peers.add(sums(failed=1, at=NOW + 130, reason=FailureReason.TIMEOUT), NOW + 130)
    assert only(peers).failure_reason is FailureReason.TIMEOUT


def test_cutting_keeps_those_tried_last_and_says_until_when() -> None:
    peers = Peers()
    for number in range(10):
        peers.add(sums(port=1000 + number, succeeded=1, at=NOW + number), NOW + number)
    peers.cut(10, NOW + 20)
    assert peers.cut_until == 0.0
    peers.cut(3, NOW + 20)
    assert [peer.port for peer in peers.snapshot()] == [1007, 1008, 1009]
    assert peers.cut_until == NOW + 20 + PEER_RETENTION_SECONDS


def test_addresses_are_in_an_order_that_stays() -> None:
    peers = Peers()
    for address in ("10.0.0.9", "10.0.0.10", "::1"):
        peers.add(sums(address, succeeded=1), NOW)
    first = [peer.address for peer in peers.snapshot()]
    peers.add(sums("10.0.0.10", succeeded=1), NOW)
    assert [peer.address for peer in peers.snapshot()] == first


def test_what_an_earlier_agent_knew_is_taken_over_and_goes_on() -> None:
    before, after = Peers(), Peers()
    before.add(sums(succeeded=2, failed=1, at=NOW), NOW)
    after.adopt(before.snapshot())
    after.add(sums(failed=1, at=NOW + 5, reason=FailureReason.TIMEOUT), NOW + 5)
    peer = only(after)
    assert (peer.succeeded, peer.failed, peer.failure_reason) == (2, 2, FailureReason.TIMEOUT)


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 1000), st.integers(1, 3)
    )
)


@given(EVENTS)
def test_counts_only_grow_and_times_never_go_back(events: list[tuple[int, int, int, int, int]]) -> None:
    peers = Peers()
    for succeeded, failed, aborted, at, port in events:
        before = {peer.port: peer for peer in peers.snapshot()}
        peers.add(sums(port=port, succeeded=succeeded, failed=failed, aborted=aborted, at=NOW + at), NOW + at)
        for peer in peers.snapshot():
            old = before.get(peer.port, Peer(peer.address, peer.port))
            assert (peer.succeeded, peer.failed, peer.aborted) >= (old.succeeded, old.failed, old.aborted)
            assert (peer.last_success or 0) >= (old.last_success or 0)
            assert (peer.last_failure or 0) >= (old.last_failure or 0)
            assert (peer.failed > 0) == (peer.failure_reason is not FailureReason.NONE)


@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_a_cut_leaves_at_most_the_limit(limit: int) -> None:
    peers = Peers()
    for port in range(1, 21):
        peers.add(sums(port=port, succeeded=1), NOW)
    peers.cut(limit, NOW)
    assert len(peers) == min(limit, 20)
