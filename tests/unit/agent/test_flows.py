# SPDX-License-Identifier: MIT
"""Rows of the reader in plain terms: addresses, reasons, and stamps that wrap around."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.model.node import FailureReason
from pacto_agent.flows import STAMP_MODULUS, ClockPair, address_text, connection_sums, listen_event
from pacto_native import rows

WALL = 1_800_000_000.0


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (bytes([10, 0, 0, 1]), "10.0.0.1"),
        (bytes(4), "0.0.0.0"),
        (bytes(16), "::"),
        (bytes(15) + b"\1", "::1"),
        (bytes.fromhex("20010db8000000000000000000000001"), "2001:db8::1"),
    ],
)
def test_an_address_has_its_usual_text(raw: bytes, text: str) -> None:
    assert address_text(raw) == text


def test_a_stamp_of_now_is_now_and_one_of_before_is_before() -> None:
    clocks = ClockPair(5_000_000, WALL)
    assert clocks.wall_of(5_000_000) == WALL
    assert clocks.wall_of(4_998_500) == WALL - 1.5


def test_a_stamp_taken_a_hair_after_the_clocks_lies_in_the_future() -> None:
    assert ClockPair(5_000_000, WALL).wall_of(5_000_003) == WALL + 0.003


def test_a_stamp_from_before_the_wrap_is_before_one_after_it() -> None:
    # 49 days after boot the stamp starts again
    clocks = ClockPair(STAMP_MODULUS + 500, WALL)
    assert clocks.wall_of(STAMP_MODULUS - 500) == WALL - 1
    assert clocks.wall_of(499) == pytest.approx(WALL - 0.001)


@given(st.integers(0, 1 << 45), st.integers(-1000, (1 << 31) - 1))
def test_every_stamp_of_the_last_24_days_has_its_time(mono_ms: int, ago: int) -> None:
    told = ClockPair(mono_ms, WALL).wall_of((mono_ms - ago) % STAMP_MODULUS)
    assert told == pytest.approx(WALL - ago / 1000)


@pytest.mark.parametrize(
    ("kind", "family", "flags", "v6only"),
    [
        (rows.LISTEN, 4, 0, None),
        (rows.LISTEN, 6, 0, False),
        (rows.LISTEN, 6, rows.V6ONLY, True),
        (rows.UNLISTEN, 6, rows.V6ONLY | rows.MPTCP, True),
    ],
)
def test_a_listen_row_keeps_what_it_says(kind: int, family: int, flags: int, v6only: bool | None) -> None:
    event = listen_event((kind, 7, 9, 11, 13, family, bytes(4 if family == 4 else 16), 258, flags))
    assert (event.cgroup_id, event.cookie, event.netns) == (7, 9, 11)
    assert event.began is (kind == rows.LISTEN)
    assert (event.socket.inode, event.socket.port, event.socket.v6only) == (13, 258, v6only)
    assert event.socket.cgroup_id == 7


def test_times_are_of_outcomes_that_happened() -> None:
    clocks = ClockPair(10_000, WALL)
    peer = (7, 9, 11, 4, bytes([10, 0, 0, 1]), 5432)
    none = connection_sums((*peer, 0, 0, 3, 0, 0, 0), clocks)
    assert (none.last_success, none.last_failure, none.reason) == (None, None, FailureReason.NONE)
    both = connection_sums((*peer, 1, 1, 0, 9_000, 9_500, 2), clocks)
    assert (both.last_success, both.last_failure) == (WALL - 1, WALL - 0.5)
    assert both.reason is FailureReason.TIMEOUT
    assert (both.cgroup_id, both.cookie, both.netns, both.address, both.port) == (7, 9, 11, "10.0.0.1", 5432)


@pytest.mark.parametrize("number", range(len(rows.REASONS)))
def test_every_reason_of_the_kernel_has_its_name(number: int) -> None:
    told = connection_sums((7, 9, 11, 4, bytes(4), 1, 0, 1, 0, 0, 0, number), ClockPair(0, WALL)).reason
    expected = "" if number == rows.REASON_ABORTED else rows.REASONS[number]
    assert told.value == expected
