# SPDX-License-Identifier: MIT
"""One caller has a share of the reader's table: what passes it is its own, and nobody else's loss."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_pacto.model import bounds
from pacto_native import reference, ring, rows
from tests.native.test_ring import STAMPS, WRAP, Fed, agreed, flow, spilled

NOISY, QUIET = 66, 7
SHARE = rows.ORIGIN_PEERS
PORTS = range(1, 60_001)


def head(
    count: int, *, stamp: int = 1000, cgroup: int = NOISY, cookie: int = 9, netns: int = 4026531840
) -> tuple[bytes, bytes]:
    """The head of a caller in the spill map."""
    key = reference.SPILL_KEY.pack(cgroup, cookie, netns, bytes(16), 0, rows.SPILL_HEAD, 0)
    return key, reference.SPILL.pack(count, stamp, 0)


def own(cgroup: int, port: int) -> Fed:
    """A caller's record, about a peer that only it has."""
    return flow(rows.FAILED, cgroup=cgroup, port=port, reason=1)


def test_a_share_is_what_is_kept_of_a_pod() -> None:
    assert SHARE == bounds.PEERS_PER_POD, "who is cut here would be cut there: it is truncated either way"
    assert rows.ORIGIN_SPILLED == 3 * SHARE, "succeeded, failed and aborted are entries of their own"
    assert rows.ORIGINS >= 8 * bounds.PODS_PER_NODE


def test_who_goes_through_all_ports_costs_nobody_else_an_event() -> None:
    records: list[Fed] = []
    for port in PORTS:
        records.append(own(NOISY, port))
        if port % 1000 == 0:
            records += [flow(cgroup=QUIET, port=port // 1000), flow(rows.LISTEN, cgroup=QUIET, stamp=port)]
    said = agreed(records)
    assert said.lost == (0, 0, 0, 0)
    assert said.cuts == [(NOISY, 9, 4026531840, len(PORTS) - SHARE, 1000)]
    assert said.cut == len(PORTS) - SHARE
    assert [row[5] for row in said.connections if row[0] == QUIET] == list(range(1, 61))
    assert sum(row[0] == NOISY for row in said.connections) == SHARE
    assert len(said.listens) == 60


def test_a_known_peer_is_counted_however_many_others_were_cut() -> None:
    ports = [*PORTS[:500], *PORTS[: SHARE + 1]]
    said = agreed([own(NOISY, port) for port in ports])
    assert {row[7] for row in said.connections} == {2}
    assert said.cut == 500 - SHARE + 1


@pytest.mark.parametrize("extra", [0, 1])
def test_the_share_is_exact(extra: int) -> None:
    said = agreed([own(NOISY, port) for port in PORTS[: SHARE + extra]])
    assert (len(said.connections), said.cut, len(said.cuts)) == (SHARE, extra, extra)


@pytest.mark.parametrize("part", ["cgroup", "cookie", "netns"])
def test_each_part_tells_callers_apart(part: str) -> None:
    callers: list[dict[str, Any]] = [{part: number} for number in (70, 71)]
    said = agreed([flow(port=port, **caller) for caller in callers for port in PORTS[:200]])
    assert len(said.connections) == 2 * SHARE
    assert [row[3] for row in said.cuts] == [200 - SHARE] * 2


def test_a_new_moment_is_a_new_share() -> None:
    native, twin = ring.FlowReader(), reference.FlowReader()
    for reader in (native, twin):
        for moment in range(1, 5):  # two buffers take turns
            for port in PORTS[:200]:
                reader.feed(flow(port=port))
            assert reader.take() == (0, SHARE)
            assert reader.cuts() == [(7, 9, 4026531840, 200 - SHARE, 1000)]
            assert reader.cut == moment * (200 - SHARE), "since the start"
        for port in PORTS[100:150]:
            reader.feed(flow(port=port))
        assert reader.take() == (0, 50)
        assert reader.cuts() == []


@pytest.mark.parametrize("part", ["cgroup", "cookie", "netns"])
def test_more_callers_than_are_told_apart_are_a_loss(part: str) -> None:
    chance = random.Random(3)  # numbers in a row would hardly share a slot
    callers: list[dict[str, Any]] = [{part: chance.getrandbits(32)} for _ in range(rows.ORIGINS + 3)]
    said = agreed([*(flow(**caller) for caller in callers), flow(rows.FAILED, **(callers[0] | {part: 9**9}))])
    assert len(said.connections) == rows.ORIGINS
    assert said.lost == (0, 0, 3, 1)
    assert said.cuts == []


def test_callers_that_come_and_go_are_told_apart_in_each_moment() -> None:
    reader = ring.FlowReader()
    for moment in range(6):
        for number in range(rows.ORIGINS):
            reader.feed(flow(cgroup=moment * rows.ORIGINS + number))
        assert reader.take() == (0, rows.ORIGINS)
    assert reader.lost == (0, 0, 0, 0)


def test_a_caller_past_its_share_is_no_loss_in_a_full_table() -> None:
    callers = rows.TABLE_ENTRIES // SHARE
    records = [flow(cgroup=number, port=port) for number in range(callers) for port in PORTS[:SHARE]]
    said = agreed([*records, flow(cgroup=0, port=999), flow(cgroup=callers, port=999)])
    assert said.lost == (0, 0, 1, 0), "the one without an entry lost one"
    assert said.cut == 1


@pytest.mark.parametrize(("count", "beyond"), [(0, 0), (384, 0), (385, 1), (70_000, 69_616)])
def test_a_head_of_the_spill_map_tells_what_the_kernel_cut(count: int, beyond: int) -> None:
    said = agreed([head(count, stamp=77), flow(cgroup=QUIET)])
    assert said.cuts == ([(NOISY, 9, 4026531840, beyond, 77)] if beyond else [])
    assert (said.cut, said.lost, len(said.connections)) == (beyond, (0, 0, 0, 0), 1)


def test_what_kernel_and_table_cut_adds_up_and_the_last_stamp_stays() -> None:
    records = [flow(cgroup=NOISY, port=port, stamp=port) for port in PORTS[:200]]
    said = agreed([*records, head(400, stamp=50), head(400, stamp=300)])
    assert said.cuts == [(NOISY, 9, 4026531840, 72 + 16 + 16, 300)]


def test_a_head_without_room_for_its_caller_is_a_loss() -> None:
    records = [flow(cgroup=number) for number in range(rows.ORIGINS)]
    said = agreed([*records, head(390, cgroup=9**9)])
    assert said.lost == (0, 0, 0, 6)


CALLERS = st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from([1, WRAP - 1]))


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(CALLERS, st.integers(0, 2), st.integers(1, 300), st.integers(1, 300), STAMPS),
        max_size=12,
    ),
    st.lists(st.tuples(CALLERS, st.sampled_from([0, 384, 385, (1 << 64) - 1]), STAMPS), max_size=4),
)
def test_both_readers_agree_on_whole_ranges_of_ports(
    ranges: list[tuple[tuple[int, int, int], int, int, int, int]],
    heads: list[tuple[tuple[int, int, int], int, int]],
) -> None:
    records: list[Fed] = [
        flow(kind, cgroup=cgroup, cookie=cookie, netns=netns, port=first + step, stamp=stamp)
        if kind != rows.UNLISTEN
        else spilled(rows.CONNECTED, 3, stamp, 0, port=first + step)
        for (cgroup, cookie, netns), choice, first, length, stamp in ranges
        for kind in [(rows.CONNECTED, rows.FAILED, rows.UNLISTEN)[choice]]
        for step in range(length)
    ]
    records += [
        head(count, stamp=stamp, cgroup=cgroup, cookie=cookie, netns=netns)
        for (cgroup, cookie, netns), count, stamp in heads
    ]
    said = agreed(records)
    assert said.lost == (0, 0, 0, 0), "no room was short"
    assert sum(row[3] for row in said.cuts) & (1 << 64) - 1 == said.cut


GOLDEN_INVERSE = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
# keys that collide under what is usual: unkeyed multiplication, shifts, exclusive or, sums of words
HOSTILE = {
    "multiples of a power of two": [number << 40 for number in range(6000)],
    "high bits alone": [number << 51 for number in range(6000)],
    "of the golden ratio's inverse": [number * GOLDEN_INVERSE % (1 << 64) for number in range(6000)],
    "the same sum of halves": [(number << 32) + (1 << 31) - number for number in range(6000)],
    "in a row": list(range(6000)),
}


def seconds(records: list[bytes]) -> float:
    """CPU time of one pass over the records."""
    reader = ring.FlowReader()
    began = time.process_time()
    for record in records:
        reader.feed(record)
    return time.process_time() - began


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["address", "both halves", "origin"])
def test_hostile_keys_are_found_again_and_cost_no_more_than_others(name: str, where: str) -> None:
    def made(keys: list[int]) -> list[bytes]:
        def one(number: int, key: int) -> bytes:
            low = key.to_bytes(8, "little")
            if where == "origin":
                return flow(cgroup=key, cookie=number % 2)
            high = (-key % (1 << 64)).to_bytes(8, "little") if where == "both halves" else bytes(8)
            cgroup = number // 100 * GOLDEN_INVERSE % (1 << 64)
            return flow(cgroup=cgroup, address=low + high, family=6)

        return [one(number, key) for number, key in enumerate(keys[: 2000 if where == "origin" else None])]

    hostile = made(HOSTILE[name])
    said = agreed([*hostile, *hostile])
    assert {row[6] for row in said.connections} == {2}
    assert (said.lost, said.cut) == ((0, 0, 0, 0), 0)
    ordinary = min(seconds(made([index * 2**20 + index for index in range(6000)])) for _ in range(3))
    assert min(seconds(hostile) for _ in range(3)) < 5 * ordinary + 0.01
