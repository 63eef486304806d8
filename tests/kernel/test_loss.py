# SPDX-License-Identifier: MIT
"""Events that find no room: each is counted, and listen events are the last to be lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_pacto.model import bounds
from pacto_agent.tracer import Tracer
from pacto_native.rows import FAILED, LISTEN, ORIGIN_PEERS, ORIGIN_SPILLED, UNLISTEN
from tests.support.events import Recorder, recording
from tests.support.hosts import Host, Pod, until

RECORD_BYTES = 48 + 8
MADE = 10007  # more than the ring and the spill map together hold
CALLERS = 20  # with a share of the spill map each, they fill it
# each to a port of its own, so that the spill map cannot merge them
REFUSALS = "[connect_refused(1 + number) for number in range({first}, {last})]"
DEFINE = (
    "def connect_refused(number):\n"
    "    with socket.socket() as one: return one.connect_ex(('127.0.0.1', number))"
)


def counts(tracer: Tracer) -> tuple[tuple[int, int, int, int], int]:
    """(lost per kind, spilled), as of the last pass."""
    reader = tracer._reader  # the counters apart, which the agent only needs in sum
    return reader.lost, reader.spilled


def total(recorder: Recorder) -> int:
    """All connections of this machine that a recorder was told of."""
    recorder.gather()
    return sum(one.succeeded + one.failed + one.aborted for one in recorder.all_sums)


def storm(pod: Pod, count: int) -> None:
    """Connect to `count` different ports that nobody serves."""
    pod.run(DEFINE)
    pod.run(REFUSALS.format(first=0, last=count))


def cut(recorder: Recorder, pods: Sequence[Pod]) -> int:
    """Events of these pods past their share, in the kernel and in the reader."""
    recorder.gather()
    wanted = {pod.netns for pod in pods}
    return sum(one.events for one in recorder.all_cuts if one.netns in wanted)


@pytest.mark.parametrize(("callers", "count"), [(1, 1009), (1, MADE), (CALLERS, MADE)])
def test_a_stalled_reader_loses_nothing_uncounted(host: Host, callers: int, count: int) -> None:
    pods = [host.pod() for _ in range(callers)]
    # a second reader that keeps up: how many connections others on this machine made meanwhile
    with recording() as witness:
        witness.tracer.start(poll_ms=50)
        with recording() as stalled:
            for pod in pods:
                storm(pod, count // callers)
            made = count // callers * callers
            mine = sum(one.failed for pod in pods for one in stalled.sums(pod)) + cut(stalled, pods)
            told = total(stalled) + stalled.tracer._reader.cut
            lost, spilled = counts(stalled.tracer)
        others = total(witness) + witness.tracer._reader.cut + sum(counts(witness.tracer)[0]) - made
    assert mine + lost[FAILED] >= made
    assert made <= told + sum(lost) <= made + others, "each event is delivered or counted, exactly once"
    assert lost[LISTEN] == lost[UNLISTEN] == 0
    # one alone is held to its share of the map, which is a loss to nobody
    assert (lost[FAILED] > 0) == (callers > bounds.SPILL_ENTRIES // ORIGIN_SPILLED)
    assert (spilled > 0) == (count > bounds.RING_BYTES // RECORD_BYTES * 3 // 4)


def test_who_fills_its_share_of_the_spill_map_leaves_room_for_others(host: Host, recorder: Recorder) -> None:
    noisy, *others = (host.pod() for _ in range(5))
    storm(noisy, MADE)
    for number, pod in enumerate(others):
        pod.run(DEFINE)
        pod.run(REFUSALS.format(first=0, last=20))
        pod.run(f"connect_many('127.0.0.1', 9, {number + 100})")
    for number, pod in enumerate(others):
        told = recorder.outcomes(pod)
        assert len(told) == 20
        assert told["127.0.0.1", 9].failed == number + 101
        assert cut(recorder, [pod]) == 0
    held = sum(one.failed for one in recorder.sums(noisy))
    assert held == ORIGIN_PEERS
    assert cut(recorder, [noisy]) == MADE - held
    lost, spilled = counts(recorder.tracer)
    assert lost == (0, 0, 0, 0)
    assert spilled > MADE - bounds.RING_BYTES // RECORD_BYTES


def test_connections_to_one_peer_are_merged_and_never_lost(pod: Pod, recorder: Recorder) -> None:
    pod.run("connect_many('127.0.0.1', 9, 10007)")
    assert recorder.outcome(pod, "127.0.0.1", 9).failed == 10007
    lost, spilled = counts(recorder.tracer)
    assert lost[FAILED] == 0
    assert spilled > 0


def test_aborts_are_spilled_apart_from_failures(pod: Pod, recorder: Recorder) -> None:
    pod.run("connect_many('127.0.0.1', 9, 5000)")  # the ring has no more room for connections
    port = pod.number("black_hole()")
    pod.run(
        f"def abort():\n    for _ in range(11): close(start_connecting('127.0.0.1', {port}))\n"
        f"abort(); close_all(); connect_many('127.0.0.1', {port}, 13)"
    )
    outcome = recorder.outcome(pod, "127.0.0.1", port)
    assert (outcome.aborted, outcome.failed) == (11, 13)


def test_a_storm_of_connections_leaves_room_for_listen_events(pod: Pod, recorder: Recorder) -> None:
    storm(pod, MADE)
    pod.run("opened = [listen('127.0.0.1') for _ in range(500)]\nclose(*opened[::2])")
    opened = pod.run("opened")
    assert [(began, inode) for began, inode, *_ in recorder.listens(pod)] == [
        *[(True, inode) for inode in opened],
        *[(False, inode) for inode in opened[::2]],
    ]
    lost, _ = counts(recorder.tracer)
    assert lost[LISTEN] == lost[UNLISTEN] == 0


def test_listen_events_past_the_whole_ring_are_counted(pod: Pod, recorder: Recorder) -> None:
    room = bounds.RING_BYTES // RECORD_BYTES
    pod.run(f"for _ in range({room}): close(listen('127.0.0.1'))")
    told = len(recorder.listens(pod))
    lost, _ = counts(recorder.tracer)
    assert lost[LISTEN] + lost[UNLISTEN] > 0
    assert told + lost[LISTEN] + lost[UNLISTEN] >= 2 * room


def test_after_a_drain_all_is_well_again(host: Host, pod: Pod, recorder: Recorder) -> None:
    for one in [host.pod() for _ in range(CALLERS)]:
        storm(one, MADE // CALLERS)
    recorder.gather()
    lost, spilled = counts(recorder.tracer)
    assert lost[FAILED] > 0
    pod.run("connect('127.0.0.1', 65000)")
    recorder.gather()
    assert counts(recorder.tracer) == (lost, spilled)
    assert recorder.tracer.lost()[1] >= lost[FAILED], "a loss is never taken back"


def test_the_reader_is_woken_by_64_kib_and_not_by_each_event(pod: Pod, recorder: Recorder) -> None:
    recorder.tracer.start(poll_ms=60_000)
    reader = recorder.tracer._reader
    pod.run("connect_many('127.0.0.1', 9, 100)")
    assert reader.passes == 0, "a hundred records wait without a wake-up"
    pod.run("connect_many('127.0.0.1', 9, 6000)")
    until(lambda: reader.records >= 2000, "a wake-up by a filling ring")
    # a reader that is slow to come is called again by each record past the mark until it does
    assert reader.passes * 10 < reader.records
    assert sum(counts(recorder.tracer)[0]) == 0
    assert recorder.outcome(pod, "127.0.0.1", 9).failed == 6100
