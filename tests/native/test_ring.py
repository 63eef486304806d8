# SPDX-License-Identifier: MIT
"""ring.FlowReader and its plain-Python twin agree on good, random, cut and hostile records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pacto_native import reference, ring, rows

WRAP = 1 << 32


Fed = bytes | tuple[bytes, bytes]
Reader = ring.FlowReader | reference.FlowReader


class Said(NamedTuple):
    """All that a reader can say, with the buffer taken."""

    listens: list[rows.ListenRow]
    connections: list[rows.ConnectionRow]
    counted: tuple[int, int]
    lost: tuple[int, int, int, int]
    malformed: int
    records: int
    cuts: list[rows.CutRow]
    cut: int


def flow(
    kind: int = rows.CONNECTED,
    *,
    cgroup: int = 7,
    cookie: int = 9,
    netns: int = 4026531840,
    stamp: int = 1000,
    address: bytes = bytes([10, 0, 0, 1]) + bytes(12),
    port: int = 258,
    family: int = 4,
    reason: int | None = None,
    flags: int = 0,
) -> bytes:
    """One record as the kernel program writes it."""
    told = reason if reason is not None else int(kind == rows.FAILED)
    return reference.FLOW.pack(cgroup, cookie, netns, stamp, address, port, kind, family, told, flags, 0)


def spilled(
    kind: int, count: int, stamp: int, reason: int, *, port: int = 258, cgroup: int = 7
) -> tuple[bytes, bytes]:
    """One entry of the spill map, about the same peer as flow()."""
    address = bytes([10, 0, 0, 1]) + bytes(12)
    key = reference.SPILL_KEY.pack(cgroup, 9, 4026531840, address, port, kind, 4)
    return key, reference.SPILL.pack(count, stamp, reason)


def pair() -> tuple[ring.FlowReader, reference.FlowReader]:
    """The two that must agree."""
    return ring.FlowReader(), reference.FlowReader()


def said_by(reader: Reader, records: Sequence[Fed]) -> Said:
    """Feed one reader, take its buffer and ask for everything."""
    for record in records:
        if isinstance(record, tuple):
            reader.feed_spilled(*record)
        else:
            reader.feed(record)
    listens, keys = counted = reader.take()
    return Said(
        reader.listens(0, listens),
        reader.connections(0, keys),
        counted,
        reader.lost,
        reader.malformed,
        reader.records,
        reader.cuts(),
        reader.cut,
    )


def agreed(records: Sequence[Fed]) -> Said:
    """Feed both; returns what both then say."""
    native, twin = (said_by(reader, records) for reader in pair())
    assert native == twin
    return native


U64 = st.sampled_from([0, 1, 2, (1 << 64) - 1])
STAMPS = st.sampled_from([0, 1, 5, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, WRAP - 1])
ADDRESSES = st.sampled_from([bytes(16), bytes(15) + b"\1", b"\x0a" + bytes(15), b"\xff" * 16])
PORTS = st.sampled_from([0, 1, 258, 513, 65535])
PLAUSIBLE = st.builds(
    reference.FLOW.pack,
    U64,
    U64,
    st.sampled_from([0, 1, WRAP - 1]),
    STAMPS,
    ADDRESSES,
    PORTS,
    st.integers(0, 4),
    st.sampled_from([4, 6, 0, 5]),
    st.integers(0, 8),
    st.integers(0, 3),
    st.sampled_from([0, 65535]),
)
SPILLED = st.tuples(
    st.builds(
        reference.SPILL_KEY.pack, U64, U64, st.just(1), ADDRESSES, PORTS, st.integers(0, 5), st.integers(4, 6)
    ),
    st.builds(reference.SPILL.pack, U64, STAMPS, st.integers(0, 8)),
)


@given(st.lists(st.one_of(PLAUSIBLE, SPILLED, st.binary(max_size=96)), max_size=40))
@example([b""])
def test_both_readers_agree_on_random_records(records: list[Fed]) -> None:
    agreed(records)


@given(st.lists(st.binary(min_size=48, max_size=48), max_size=20))
def test_both_readers_agree_on_random_bytes_of_the_right_size(records: list[bytes]) -> None:
    agreed(list(records))


def test_a_record_of_any_other_size_is_malformed() -> None:
    sizes = [size for size in range(4 * 48 + 1) if size != 48]
    said = agreed([(flow() * 4)[:size] for size in sizes])
    assert (said.malformed, said.records) == (len(sizes), len(sizes))
    assert said.counted == (0, 0)


@pytest.mark.parametrize(
    "place", [42, 43, 44, 45, 46, 47], ids=["kind", "family", "reason", "flags", "s1", "s2"]
)
def test_every_value_of_every_enum_byte_is_judged_alike(place: int) -> None:
    for kind in range(rows.KINDS):
        record = bytearray(flow(kind))
        records: list[Fed] = []
        for value in range(256):
            record[place] = value
            records.append(bytes(record))
        agreed(records)


def test_a_port_keeps_its_byte_order() -> None:
    listens, connections, *_ = agreed([flow(rows.LISTEN), flow()])
    assert listens[0][7] == 258
    assert connections[0][5] == 258


def test_addresses_have_the_length_of_their_family() -> None:
    address = bytes(range(16))
    listens, connections, *_ = agreed(
        [flow(kind, address=address, family=family) for kind in range(4) for family in (4, 6)]
    )
    assert {row[6] for row in listens} == {address[:4], address}
    assert {row[4] for row in connections} == {address[:4], address}


def test_listens_keep_their_order_and_flags() -> None:
    kinds = [rows.LISTEN, rows.UNLISTEN, rows.LISTEN, rows.LISTEN]
    said = agreed([flow(kind, stamp=i, flags=i) for i, kind in enumerate(kinds)])
    assert [(row[0], row[4], row[8]) for row in said.listens] == [(k, i, i) for i, k in enumerate(kinds)]


def test_outcomes_are_columns_of_one_row() -> None:
    said = agreed(
        [
            flow(rows.CONNECTED, stamp=5),
            flow(rows.FAILED, stamp=6, reason=2),
            flow(rows.FAILED, stamp=7, reason=rows.REASON_ABORTED),
            spilled(rows.CONNECTED, 10, 9, 0),
            spilled(rows.FAILED, 20, 4, 1),
            spilled(rows.KINDS, 30, 4, rows.REASON_ABORTED),
        ]
    )
    peer = (7, 9, 4026531840, 4, bytes([10, 0, 0, 1]), 258)
    assert said.connections == [(*peer, 11, 21, 31, 9, 6, 2)]


@pytest.mark.parametrize("distance", [1, 2, (1 << 31) - 1])
@pytest.mark.parametrize("start", [0, 1, 1000, 1 << 31, WRAP - 1])
def test_the_later_stamp_wins_across_the_wrap(start: int, distance: int) -> None:
    late = (start + distance) % WRAP
    for stamps in ([start, late], [late, start]):
        said = agreed([flow(stamp=stamp) for stamp in stamps])
        assert said.connections[0][9] == late
        said = agreed([flow(rows.FAILED, stamp=stamp, reason=1 + (stamp == late)) for stamp in stamps])
        assert said.connections[0][10:] == (late, 2)


def test_half_a_wrap_apart_is_judged_alike() -> None:
    agreed([flow(stamp=0), flow(stamp=1 << 31)])
    agreed([flow(rows.FAILED, stamp=0), flow(rows.FAILED, stamp=1 << 31, reason=2)])


def test_a_full_table_counts_what_finds_no_room_and_keeps_known_peers() -> None:
    # a hundred peers for each of a hundred callers: none has more than its share
    callers = [(number // 100, number % 100) for number in range(rows.TABLE_ENTRIES + 3)]
    records: list[Fed] = [flow(port=port, cgroup=100 + cgroup) for cgroup, port in callers]
    records += [flow(rows.FAILED, port=0, cgroup=100), flow(rows.FAILED, port=1, cgroup=99)]
    records += [spilled(rows.CONNECTED, 5, 1, 0), spilled(rows.FAILED, 7, 1, 1, port=3)]
    said = agreed(records)
    assert len(said.connections) == rows.TABLE_ENTRIES
    assert said.lost == (0, 0, 3 + 5, 1 + 7)
    assert (said.cuts, said.cut) == ([], 0)


def test_a_full_log_counts_what_finds_no_room() -> None:
    records: list[Fed] = [flow(i & 1, stamp=i) for i in range(rows.LOG_ENTRIES + 3)]
    said = agreed(records)
    assert len(said.listens) == rows.LOG_ENTRIES
    assert said.lost == (2, 1, 0, 0)


def test_peers_whose_hashes_collide_stay_apart() -> None:
    chance = random.Random(1)
    cgroups = [chance.getrandbits(64) for _ in range(rows.ORIGINS)]
    records: list[Fed] = [
        flow(cgroup=one, port=port) for one in cgroups for port in chance.sample(range(65536), 4)
    ]
    assert len(records) == rows.TABLE_ENTRIES
    said = agreed(records * 2)
    assert {row[6] for row in said.connections} == {2}
    assert said.lost == (0, 0, 0, 0)


def test_a_taken_buffer_is_read_by_slices_and_the_next_starts_empty() -> None:
    native, twin = pair()
    for reader in (native, twin):
        for i in range(10):
            reader.feed(flow(rows.LISTEN, stamp=i))
            reader.feed(flow(port=i))
        assert reader.take() == (10, 10)
        assert [row[4] for row in reader.listens(3, 6)] == [3, 4, 5]
        assert [row[5] for row in reader.connections(8, 99)] == [8, 9]
        assert reader.connections(10, 20) == []
        assert reader.listens(20, 10) == []
        reader.feed(flow(port=77))
        assert reader.take() == (0, 1)
        assert reader.listens(0, 10) == []
        assert reader.take() == (0, 0)


@pytest.mark.parametrize(("key", "value"), [(39, 16), (41, 16), (40, 15), (40, 17), (0, 0)])
def test_a_spilled_entry_of_another_size_is_refused(key: int, value: int) -> None:
    for reader in pair():
        with pytest.raises(ValueError, match="40 and 16 bytes"):
            reader.feed_spilled(bytes(key), bytes(value))


def test_sums_wrap_as_unsigned_numbers_do() -> None:
    most = (1 << 64) - 1
    agreed([spilled(rows.CONNECTED, most, 1, 0), spilled(rows.CONNECTED, 3, 2, 0), flow()])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_a_record(kind: type) -> None:
    reader = ring.FlowReader()
    reader.feed(kind(flow()))
    assert (reader.records, reader.malformed) == (1, 0)


def test_a_record_need_not_be_aligned() -> None:
    reader = ring.FlowReader()
    reader.feed(memoryview(b"\0" + flow())[1:])  # type: ignore[arg-type]
    reader.take()
    assert reader.connections(0, 1)[0][5] == 258
