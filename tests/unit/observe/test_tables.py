# SPDX-License-Identifier: MIT
"""Every rule of the merge, coverage and status tables, by its row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import run
from tests.support.tables import describe, rows

TABLES = (
    "interface",
    "dependency",
    "coverage",
    "undeclared",
    "window",
    "upstream_api",
    "capability",
    "configuration",
    "runtime",
    "refinement",
)


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=f"{table}: {row['name']}") for table in TABLES for row in rows(table)],
)
def test_row(row: dict[str, Any]) -> None:
    assert describe(run(row), row["expect"]) == row["expect"]
