# SPDX-License-Identifier: MIT
"""What an endpoint's three conditions mean, each true, false or absent: only `ready` decides."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.builders import Row, objects, run
from tests.support.tables import describe

STATES = (True, False, None)


@pytest.mark.parametrize(
    ("ready", "serving", "terminating"), list(itertools.product(STATES, STATES, STATES)), ids=str
)
def test_ready_alone_decides_and_null_means_ready(
    ready: bool | None, serving: bool | None, terminating: bool | None
) -> None:
    conditions: dict[str, Any] = {"ready": ready, "serving": serving, "terminating": terminating}
    row: Row = {"pods": {"a": {}}}
    raws = objects(row)
    (endpoints,) = (raw["endpoints"] for raw in raws if raw["kind"] == "EndpointSlice")
    for given in (conditions, {name: value for name, value in conditions.items() if value is not None}):
        endpoints[0]["conditions"] = given
        checked = run(row, raws)
        expected = "insufficient by k8s-observer" if ready is False else "present by k8s-observer+ebpf"
        assert describe(checked, {"interface/api": expected}) == {"interface/api": expected}
