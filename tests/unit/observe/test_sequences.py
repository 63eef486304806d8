# SPDX-License-Identifier: MIT
"""Verdicts over minutes: each look starts from the status of the one before, as the operator's does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import run

EVERY = 30
RESYNC = 60
GIVES_UP = 131  # a blocking connect to a black hole, on kernels since 6.5


def looks(until: int, peer: Callable[[int], str | None]) -> list[tuple[int, str, float | None]]:
    """(second, contract status, age of the window) of each look at a caller of `db`."""
    found: list[tuple[int, str, float | None]] = []
    began: int | None = None
    for now in range(0, until, EVERY):
        said = peer(now)
        row: dict[str, Any] = {
            "contract": {"dependencies": ["db"]},
            "providers": {"db": {"started": 86400}},
            "pods": {"a": {"started": 7200, "peers": [said] if said else []}},
            "windows": {} if began is None else {"dependency/db": now - began},
            "nodes": {"n1": {"connectionsSince": 7200}},
        }
        checked = run(row)
        windows = checked.status.get("observationWindows", ())
        began = (began if began is not None else now) if windows else None
        found.append((now, checked.contract_status.value, None if began is None else now - began))
    return found


def failing(now: int, *, pending: bool) -> str | None:
    """What a client says whose every connect waits in a black hole until the kernel gives up."""
    failures = list(range(GIVES_UP, now + 1, GIVES_UP))
    if pending:  # a resync finds the waiting socket, from its first retransmission on
        failures += [at for at in range(0, now + 1, RESYNC) if at % GIVES_UP >= 1]
    return f"10.96.0.1:5432 fail {now - max(failures)}" if failures else None


def test_a_black_hole_becomes_unreachable_and_stays_so() -> None:
    seen = looks(1200, lambda now: failing(now, pending=True))
    found = [now for now, status, _ in seen if status == "NonCompliant"]
    assert found, "never reported"
    assert found == list(range(found[0], 1200, EVERY)), "once reported it stays"
    assert found[0] <= RESYNC + 120 + EVERY


def test_without_looking_at_waiting_sockets_it_would_come_and_go() -> None:
    # why a resync reports them: a failure each 131 s is recent for 90 s only
    seen = looks(1200, lambda now: failing(now, pending=False))
    assert not any(status == "NonCompliant" for _, status, _ in seen)


@pytest.mark.parametrize("age", [30, 90])
def test_an_attempt_of_another_family_that_the_caller_gives_up_leaves_it_reachable(age: int) -> None:
    seen = looks(600, lambda now: f"10.96.0.1:5432 ok {age} aborted {now // EVERY + 1}")
    assert {status for _, status, _ in seen} == {"Compliant"}
