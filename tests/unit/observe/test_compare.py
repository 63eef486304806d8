# SPDX-License-Identifier: MIT
"""Statuses that say the same although time has passed."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.conformance.check import check
from kubectl_pacto.conformance.compare import differs_beyond_times
from kubectl_pacto.conformance.source import load_offline
from tests.support.builders import AT, cluster, options, run

FAILING: dict[str, Any] = {
    "contract": {"interfaces": ["api"], "dependencies": ["db"]},
    "providers": {"db": {}},
    "pods": {"a": {"listens": [], "peers": ["10.96.0.1:5432 fail 5"]}},
    "windows": {"interface/api": 60, "dependency/db": 60},
}


def status(row: dict[str, Any], later: float) -> Any:
    built = cluster(row)
    mine = next(item for item in built.pactos if item.namespace == "shop")
    return check(mine, built, load_offline(mine), at=AT + later, options=options(row)).status


def test_ten_seconds_change_nothing_but_times() -> None:
    before, after = status(FAILING, 0), status(FAILING, 10)
    assert before != after
    assert not differs_beyond_times(before, after)


def test_a_newer_failure_changes_nothing_but_times() -> None:
    newer = {**FAILING, "pods": {"a": {"listens": [], "peers": ["10.96.0.1:5432 fail 1"]}}}
    assert run(FAILING).status != run(newer).status
    assert not differs_beyond_times(run(FAILING).status, run(newer).status)


@pytest.mark.parametrize(
    "change",
    [
        {"windows": {"interface/api": 60, "dependency/db": 180}},
        {"windows": {"interface/api": 61, "dependency/db": 60}},
        {"pods": {"a": {"peers": ["10.96.0.1:5432 fail 5"]}}},
        {"nodes": {"n1": {"heartbeat": 900}}},
    ],
)
def test_whatever_else_changes_is_a_difference(change: dict[str, Any]) -> None:
    assert differs_beyond_times(run(FAILING).status, run({**FAILING, **change}).status)
