# SPDX-License-Identifier: MIT
"""The agent's wiring, step by step over a stand-in tracer and mapper: no kernel, no thread, no waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kubectl_pacto.errors import AttachFailed, LoadFailed, PactoError, ResyncFailed, RingBufferFailed
from kubectl_pacto.model.bounds import READER_SILENCE_SECONDS
from kubectl_pacto.model.node import CollectionReason, NodeRuntimeObservation, PodReason
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent.agent import Agent
from pacto_agent.config import Options
from pacto_agent.flows import ConnectionSums, Cut, ListenEvent, Sockets
from pacto_agent.lookout import GAP_SECONDS
from pacto_agent.podmap import Place, PodMap
from tests.support.agents import MemorySink
from tests.unit.agent.made import listen, listening, one_pod_map, sums


class StandIn:
    """A tracer that holds what a test puts into it."""

    def __init__(self) -> None:
        self.listens: list[ListenEvent] = []
        self.sums: list[ConnectionSums] = []
        self.cuts: list[Cut] = []
        self.dropped = (0, 0)
        self.problem = ""
        self.silence = 0.0
        self.broken = False
        self.closed = 0

    def start(self, poll_ms: int) -> None:
        """As Tracer."""

    def drain(self) -> None:
        """As Tracer."""
        if self.broken:
            raise RingBufferFailed(problem="broken")

    def take(self) -> tuple[list[ListenEvent], Iterator[list[ConnectionSums]], list[Cut]]:
        """As Tracer."""
        listens, self.listens = self.listens, []
        taken, self.sums = self.sums, []
        cuts, self.cuts = self.cuts, []
        return listens, iter([taken]), cuts

    def lost(self) -> tuple[int, int]:
        """As Tracer."""
        return self.dropped

    def silent_seconds(self) -> float:
        """As Tracer."""
        return self.silence

    def close(self) -> None:
        """As Tracer."""
        self.closed += 1


class StandInMapper:
    """A mapper that answers what a test says, and lets something happen while it reads."""

    name = "test"
    slow = False

    def __init__(self) -> None:
        self.map = one_pod_map()
        self.sockets = Sockets()
        self.failure = ""
        self.reads = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.closed = 0

    def pods(self, previous: PodMap) -> PodMap:
        """As Mapper."""
        del previous
        self.reads += 1
        if self.failure:
            raise ResyncFailed(problem=self.failure)
        return self.map

    def baselines(
        self, places: Iterable[Place], known: Callable[[str], frozenset[int]]
    ) -> Iterator[tuple[str, Sockets | None]]:
        """As Mapper."""
        del known
        read = self.sockets
        self.meanwhile()
        for place in places:
            yield place.uid, read

    def close(self) -> None:
        """As Mapper."""
        self.closed += 1


class Bench:
    """An opened agent with its stand-ins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: PactoError | None = None) -> None:
        self.tracer, self.mapper, self.sink = StandIn(), StandInMapper(), MemorySink()

        def open_tracer(**_more: Any) -> StandIn:
            if failure:
                raise failure
            return self.tracer

        monkeypatch.setattr("pacto_agent.agent.open_tracer", open_tracer)
        monkeypatch.setattr("pacto_agent.agent.open_mapper", lambda *_args, **_more: self.mapper)
        self.agent = Agent(Options(node_name="n"), self.sink, threading.Event())
        self.agent.open()

    def publish(self) -> NodeRuntimeObservation:
        """One publish interval; the view that the sink holds then."""
        self.agent._publish()
        assert self.sink.object is not None
        return decode_node(self.sink.object)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """An agent that is well and has resynced once."""
    made = Bench(monkeypatch)
    made.agent._resync()
    return made


def test_a_silent_reader_withholds_the_lease_until_it_reads_again(bench: Bench) -> None:
    bench.publish()
    bench.tracer.silence = READER_SILENCE_SECONDS
    bench.publish()
    assert bench.sink.renewals == 1
    bench.tracer.silence = 0.0
    bench.publish()
    assert bench.sink.renewals == 2


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (LoadFailed(problem="no"), CollectionReason.LOAD_FAILED),
        (AttachFailed(problem="no"), CollectionReason.ATTACH_FAILED),
        (RingBufferFailed(problem="no"), CollectionReason.RING_BUFFER_FAILED),
    ],
)
def test_a_kernel_part_that_does_not_open_is_a_failed_node_that_still_publishes(
    monkeypatch: pytest.MonkeyPatch, failure: PactoError, reason: CollectionReason
) -> None:
    made = Bench(monkeypatch, failure)
    made.agent._resync()
    view = made.publish()
    assert view.collection.reason is reason
    assert view.collection.connections_since is None
    assert made.sink.renewals == 1
    made.agent.close()
    assert made.mapper.closed >= 1


def test_a_reader_that_ended_is_a_failed_node(bench: Bench) -> None:
    bench.tracer.problem = "EIO: Input/output error"
    bench.agent._collect()
    assert bench.publish().collection.reason is CollectionReason.RING_BUFFER_FAILED


def test_a_drain_that_fails_is_a_failed_node(bench: Bench) -> None:
    bench.tracer.broken = True
    bench.agent._resync()
    assert bench.publish().collection.reason is CollectionReason.RING_BUFFER_FAILED


def test_a_failed_resync_keeps_the_view_and_says_what_is_wrong(bench: Bench) -> None:
    bench.mapper.sockets = listening((1, 80))
    bench.agent._resync()
    bench.mapper.failure = "/proc may not be read"
    bench.agent._resync()
    view = bench.publish()
    assert view.collection.reason is CollectionReason.RESYNC_FAILED
    assert "/proc may not be read" in view.collection.message
    assert [listener.port for listener in view.pods[0].listeners] == [80]
    bench.mapper.failure = ""
    bench.agent._resync()
    assert bench.publish().collection.reason is CollectionReason.NONE


def test_a_loss_degrades_until_a_resync_that_began_after_it(bench: Bench) -> None:
    since = bench.publish().collection.connections_since
    bench.tracer.dropped = (2, 3)
    bench.agent._collect()
    view = bench.publish()
    assert view.collection.reason is CollectionReason.EVENTS_DROPPED
    assert view.collection.dropped_events == 5
    assert view.pods[0].reasons == (PodReason.EVENTS_DROPPED,)
    assert since is not None
    assert view.collection.connections_since is not None
    assert view.collection.connections_since >= since

    def lose_one_more() -> None:
        bench.tracer.dropped = (3, 3)

    bench.mapper.meanwhile = lose_one_more
    bench.agent._resync()
    assert bench.publish().pods[0].reasons == (PodReason.EVENTS_DROPPED,)
    bench.agent._resync()
    assert bench.publish().pods[0].complete


def test_an_event_during_a_baseline_is_newer_than_it(bench: Bench) -> None:
    bench.mapper.meanwhile = lambda: bench.tracer.listens.append(listen(5, 8080))
    bench.agent._resync()
    assert [listener.port for listener in bench.publish().pods[0].listeners] == [8080]


def test_an_event_that_nothing_names_asks_for_one_early_resync_and_no_more(bench: Bench) -> None:
    agent, later = bench.agent, 1e12
    due = agent._when_resync(0.0)
    bench.tracer.sums = [sums(succeeded=1, cgroup=5, netns=5)]
    agent._collect()
    early = agent._when_resync(0.0)
    assert early < due
    assert agent._when_resync(1.0) == early, "waiting longer does not put it off"
    agent._resync()
    assert agent._when_resync(later) > early
    bench.tracer.sums = [sums(succeeded=1, cgroup=5, netns=5)]
    agent._collect()
    due = agent._when_resync(0.0)
    assert due == agent._resync_due
    assert not agent._attribution.waiting, "a stranger is not waited for again"


def test_port_zero_is_read_again_at_once(bench: Bench) -> None:
    bench.mapper.sockets = listening((5, 40123))
    bench.tracer.listens = [listen(5, 0)]
    bench.agent._collect()
    assert [listener.port for listener in bench.publish().pods[0].listeners] == [40123]


def test_closing_twice_closes_each_part_once(bench: Bench) -> None:
    bench.agent.close()
    bench.agent.close()
    assert bench.tracer.closed == 1


def test_a_million_drops_are_one_line_in_an_interval(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.publish()
    for number in range(1, 101):
        bench.tracer.dropped = (number * 10_000, 0)
        bench.agent._collect()
    bench.publish()
    bench.publish()
    (line,) = capsys.readouterr().err.splitlines()
    assert "1000000 events dropped" in line


def test_one_line_is_said_when_what_is_wrong_changes(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.publish()
    bench.mapper.failure = "cannot"
    for _ in range(5):
        bench.agent._resync()
        bench.publish()
    bench.mapper.failure = ""
    bench.agent._resync()
    bench.publish()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["pacto agent"] * 2
    assert "cannot" in lines[0]
    assert "well again" in lines[1]


def test_peers_are_taken_over_from_this_boot_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Bench(monkeypatch)
    first.agent._boot_id = "this boot"
    first.agent._resync()
    first.tracer.sums = [sums(failed=3, at=2e9)]
    first.agent._collect()
    first.publish()
    for boot_id, peers in (("this boot", 1), ("another boot", 0)):
        second = Bench(monkeypatch)
        second.sink.object = first.sink.object
        second.agent._boot_id = boot_id
        second.agent._resync()
        second.agent._adopt()
        assert len(second.publish().pods[0].peers) == peers


def test_requests_to_an_api_are_told_per_minute_and_none_where_none_is_asked(bench: Bench) -> None:
    assert bench.publish().collection.api_requests_per_minute is None
    bench.sink.requests = 7
    bench.publish()
    bench.sink.requests = 9
    bench.agent._view.note_loss()  # a change, which the counter rides along with
    assert bench.publish().collection.api_requests_per_minute == 2


@pytest.mark.parametrize(("cpu", "gap"), [(0.0, GAP_SECONDS), (0.1, GAP_SECONDS), (5.0, 20.0), (30.0, 120.0)])
def test_a_costly_resync_is_followed_by_a_rest_whatever_asks_for_the_next(
    monkeypatch: pytest.MonkeyPatch, cpu: float, gap: float
) -> None:
    spent = [0.0]
    monkeypatch.setattr("pacto_agent.agent.time.thread_time", lambda: spent[0])
    bench = Bench(monkeypatch)
    bench.mapper.meanwhile = lambda: spent.__setitem__(0, cpu)
    agent = bench.agent
    agent._resync()
    ended = agent._last_resync_ended
    assert agent._resync_due == pytest.approx(ended + max(60.0, gap))
    monkeypatch.setattr("pacto_agent.agent.pod_uids", lambda _tree: {"a pod that no map has"})
    assert not agent._sees_new_pod(ended + gap - 0.1)
    assert agent._sees_new_pod(ended + gap + 0.1)
    bench.tracer.sums = [sums(succeeded=1, cgroup=5, netns=5)]
    agent._collect()
    assert agent._when_resync(ended) == pytest.approx(ended + min(gap, max(60.0, gap)))
