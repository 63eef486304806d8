# SPDX-License-Identifier: MIT
"""The operator's parts through some simulated minutes of churn: what is kept is counted, nothing is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NODES = 24
MINUTES = 10
# caches that are not full yet; a status or a contract has as many
SWING = 1000
# what is packed of it, and its contract for an hour
BLOCKS_OF_A_REVISION = 100


@cache
def life(pactos: int, minutes: int = MINUTES) -> list[dict[str, Any]]:
    """A row for every 150 s; all watches are broken three times, a third of the pods are replaced."""
    options = {"hours": minutes / 60, "pace": 9, "pactos": pactos, "nodes": NODES, "every": 150}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    # a process of its own, because its clocks are not the machine's
    command = [sys.executable, "-m", "tests.bench.operator_churn", "--json", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize("pactos", [10, 40])
def test_nothing_that_is_kept_outlives_what_it_is_about(pactos: int) -> None:
    rows = life(pactos)
    assert len(rows) == 4
    for row in rows:
        sizes = row["sizes"]
        assert sizes["table Pod"] == sizes["packed views"] == 5 * pactos
        for kind in ("Pacto", "Service", "EndpointSlice", "Deployment", "ReplicaSet"):
            assert sizes[f"table {kind}"] == pactos
        assert sizes["heartbeats"] == sizes["node records"] == NODES
        assert sizes["metrics"] <= pactos
        assert sizes["put off"] <= pactos
        assert sizes["awaited"] == 0
        assert sizes["triggers"] <= 4 * pactos
        queues = [size for name, size in sizes.items() if name.startswith("queue")]
        assert max(queues[:-1]) <= pactos
        assert queues[-1] <= 4 * pactos
        # those that were edited away go within the hour
        assert sizes["contracts"] <= 2 * pactos
        assert sizes["pool"] <= 10 * pactos + 50


def test_what_python_keeps_does_not_grow() -> None:
    """In blocks of memory, which also counts what no table knows of. By then all has been used once."""
    rows = life(10, 60)
    settled, end = rows[7], rows[-1]
    assert end["checks"] - settled["checks"] > 50
    assert end["lists"] > settled["lists"]
    made = end["revisions"] - settled["revisions"]
    assert end["blocks"] - settled["blocks"] < SWING + BLOCKS_OF_A_REVISION * made


def test_broken_watches_and_edits_were_lived_through() -> None:
    asked = life(40)[-1]["server"]["requests"]
    assert asked["LIST pods"] >= 2
    assert asked["WATCH pods"] >= 4
    assert asked["POST pactorevisions"] > 40
    assert set(life(40)[-1]["server"]["verdicts"]) == {"Compliant"}


def test_lists_have_limits_and_reads_do_not_grow_with_pactos() -> None:
    few, many = (life(count)[-1] for count in (10, 40))
    for row in (few, many):
        assert row["server"]["withoutLimit"] == []
        assert row["checks"] > 0
    assert many["checks"] >= 3 * few["checks"]
    # every check rests on five nodes' objects; the more checks there are, the more of them share a read
    assert _reads(many) / many["checks"] < 0.75 * _reads(few) / few["checks"]
    assert _reads(many) < 5 / 2 * many["checks"]


def _reads(row: dict[str, Any]) -> int:
    asked = row["server"]["requests"]
    return sum(count for what, count in asked.items() if what.endswith("noderuntimeobservations"))
