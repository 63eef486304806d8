# SPDX-License-Identifier: MIT
"""The table of a run, on the terminal and as docs/acceptance.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.acceptance.scene import Row
from tests.acceptance.table import elsewhere, sentences
from tests.cluster.layout import REPOSITORY

DOCUMENT: Final = REPOSITORY / "docs" / "acceptance.md"
HEAD: Final = """\
<!-- written by `make acceptance-docs` from its own run; edit tests/acceptance and run it again -->
# The specification, executed

Each sentence of the runtime conformance page is here, with what executes it: causes on a real cluster
(etcd, API server, kubelets, containerd), real processes as workloads, operator and agents from the image,
installed by `kubectl pacto install`. The time is from the cause until the API server told the verdict; zero
where it stood before. Most of it is the check interval: a change of sockets alone triggers no check.
"""
COLUMNS: Final = ("scenario", "cause", "verdict", "after")


def line(row: Row) -> str:
    """One row for the terminal."""
    return f"{row.seconds:6.1f} s  {row.scenario}: {row.cause} -> {row.verdict}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(one.replace('|', chr(92) + '|') for one in cells)} |"


def document(rows: Sequence[Row], *, where: str, took: float, interval: float, window: float) -> str:
    """The whole page. Sentences in the specification's order, each with the rows that execute it."""
    settings = f"Publish interval {interval:g} s, stabilization window {window:g} s, check interval 30 s."
    parts = [
        HEAD,
        f"`make acceptance` on {where}: {len(rows)} verdicts in {took:.0f} s. {settings}\n",
        "A scenario is shown in full at the first sentence that it executes, later by its name.\n",
    ]
    shown: set[str] = set()
    section, others = "", elsewhere()
    for name, (belongs, text) in sentences().items():
        if belongs != section:
            section = belongs
            parts.append(f"## {section}\n")
        parts.append(f"**{text}**\n")
        parts += _rows([row for row in rows if name in row.proves], shown)
        if name in others:
            parts.append(f"Proved by `{others[name]['by']}`: {others[name]['why']}.\n")
    return "\n".join(parts)


def _rows(found: Sequence[Row], shown: set[str]) -> list[str]:
    new = [row for row in found if row.scenario not in shown]
    old = sorted({row.scenario for row in found} & shown)
    shown |= {row.scenario for row in new}
    cells = [(row.scenario, row.cause, row.verdict, f"{row.seconds:.1f} s") for row in new]
    parts = []
    if cells:
        parts.append("\n".join([_line(COLUMNS), _line(["---"] * len(COLUMNS)), *map(_line, cells), ""]))
    if old:
        parts.append(f"Also: {', '.join(old)}.\n")
    return parts
