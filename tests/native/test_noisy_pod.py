# SPDX-License-Identifier: MIT
"""An agent over the native reader, fed by hand: one pod goes through all ports, the others lose nothing."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_pacto.model import bounds
from kubectl_pacto.model.node import CollectionReason, PodReason
from pacto_agent.podmap import Place
from pacto_agent.tracer import Tracer
from pacto_native import ring, rows
from tests.native.test_ring import WRAP, flow
from tests.native.test_ring_origins import head
from tests.unit.agent.made import CGROUP, NETNS, pod_map
from tests.unit.agent.test_agent import Bench

PORTS = range(1, 60_001)
OTHERS = 20


class HandFed(Tracer):
    """A tracer whose ring is a test."""

    def __init__(self) -> None:
        self.reader = ring.FlowReader()
        bpf: Any = SimpleNamespace(lib=SimpleNamespace(pacto_recursion_misses=lambda _: 0))
        super().__init__(bpf, self.reader, None, ExitStack())

    def start(self, poll_ms: int = 0) -> None:
        """Nothing reads but the test."""

    def drain(self) -> None:
        """Nothing waits."""

    def silent_seconds(self) -> float:
        """It reads always."""
        return 0.0


def caller(number: int) -> dict[str, Any]:
    """Whose socket: the number of a pod, in the order of the map."""
    return {"cgroup": CGROUP + number, "netns": NETNS + number, "cookie": 0}


@pytest.fixture
def tracer() -> HandFed:
    """The reader with the agent's tracer around it."""
    return HandFed()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tracer: HandFed) -> Bench:
    """An agent of one noisy pod, number 0, and some others, with a baseline of each."""
    monkeypatch.setattr("tests.unit.agent.test_agent.StandIn", lambda: tracer)
    made = Bench(monkeypatch)
    made.mapper.map = pod_map(
        Place(f"pod-{number:02}", netns=NETNS + number, pids=(1,), by_cgroup=True)
        for number in range(1 + OTHERS)
    )
    made.agent._resync()
    return made


def moment() -> int:
    """The stamp of an event that happens now."""
    return time.monotonic_ns() // 1_000_000 % WRAP


def storm(reader: ring.FlowReader, served: int = 8080) -> None:
    """All ports once, from pod 0; every other pod listens and calls meanwhile, once."""
    stamp = moment()
    for port in PORTS:
        reader.feed(flow(rows.FAILED, port=port, stamp=stamp, reason=1, **caller(0)))
        if port % (len(PORTS) // OTHERS) == 0:
            other = caller(port * OTHERS // len(PORTS))
            reader.feed(flow(rows.LISTEN, stamp=port + served, port=served, address=bytes(16), **other))
            reader.feed(flow(port=5432, stamp=stamp, **other))


def test_listeners_and_peers_of_other_pods_are_published_at_once(bench: Bench, tracer: HandFed) -> None:
    for round_ in range(3):
        storm(tracer.reader, served=8080 + round_)
        bench.agent._collect()
        view = bench.publish()
        noisy, *others = view.pods
        assert len(others) == OTHERS
        for pod in others:
            assert pod.complete
            assert {one.port for one in pod.listeners} == {*range(8080, 8081 + round_)}
            assert [(one.port, one.succeeded) for one in pod.peers] == [(5432, 1 + round_)]
        assert noisy.reasons == (PodReason.TRUNCATED,)
        assert 0 < len(noisy.peers) <= bounds.PEERS_PER_POD
        assert view.collection.reason is CollectionReason.NONE
        assert view.collection.dropped_events == 0


def test_a_single_burst_past_the_share_is_truncated_though_no_more_peers_are_held(
    bench: Bench, tracer: HandFed
) -> None:
    for port in PORTS[: bounds.PEERS_PER_POD]:
        tracer.reader.feed(flow(port=port, stamp=moment(), **caller(0)))
    bench.agent._collect()
    assert bench.publish().pods[0].complete
    for port in PORTS[: bounds.PEERS_PER_POD + 1]:
        tracer.reader.feed(flow(port=port, stamp=moment(), **caller(0)))
    bench.agent._collect()
    noisy = bench.publish().pods[0]
    assert noisy.reasons == (PodReason.TRUNCATED,)
    assert len(noisy.peers) == bounds.PEERS_PER_POD


def test_what_the_kernel_cut_marks_its_pod_alone(bench: Bench, tracer: HandFed) -> None:
    tracer.reader.feed_spilled(*head(rows.ORIGIN_SPILLED + 1, **caller(3)))
    bench.agent._collect()
    view = bench.publish()
    assert [pod.uid for pod in view.pods if not pod.complete] == ["pod-03"]
    assert view.collection.dropped_events == 0


def test_one_slice_of_a_storm_is_small(tracer: HandFed) -> None:
    storm(tracer.reader)
    _, slices, cuts = tracer.take()
    told = sum(len(one) for one in slices)
    assert told == rows.ORIGIN_PEERS + OTHERS, "Python sees a share, however many events there were"
    assert [one.events for one in cuts] == [len(PORTS) - rows.ORIGIN_PEERS]


def test_a_table_that_callers_fill_together_is_still_a_loss_of_the_node(
    bench: Bench, tracer: HandFed
) -> None:
    for cgroup in range(70):
        for port in PORTS[:120]:
            tracer.reader.feed(flow(port=port, cgroup=10_000 + cgroup))
    tracer.reader.feed(flow(port=5432, **caller(1)))
    bench.agent._collect()
    view = bench.publish()
    assert view.collection.reason is CollectionReason.EVENTS_DROPPED
    assert all(PodReason.EVENTS_DROPPED in pod.reasons for pod in view.pods)
