# SPDX-License-Identifier: MIT
"""The table of a fault run, on the terminal and as docs/faults.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.faults.ground import Told

HEAD: Final = """\
<!-- written by `make faults-docs` from its own run; edit tests/faults and run it again -->
# What is claimed while things break

`make faults` runs five applications on a real cluster and breaks what they are judged with: `good`
serves, `store` serves and `shop` calls it as declared, `guest` calls it undeclared (a warning), and
`bad` is Ready and never opens its port, which is its one true error. Every status that the API server
was told is looked at, none is sampled. A fault passes only if nobody but `bad` is accused of an error
at any moment, `bad` is never called Compliant, and all statuses become again what they were, without an
operator that is started for it (in faults that are about operators, the operator is what breaks).

*Lasted* is how long the fault was there, *healed* the seconds from its end until the last status was
right again; most of that is the check interval of 30 s.
"""
TAIL: Final = """\
## Proved elsewhere

- A full disk: operator and agent have a read-only root and write nothing to it; the agent's file sink on
  a full disk is in `tests/unit/agent/test_sinks.py`.
- A network namespace whose number is used again: `tests/kernel/test_agent_listeners.py`, where the kernel
  can be made to do it; pods that come and go here do it by chance.
- A node's clock that is wrong, alone among others: `tests/cluster_operator/test_scenarios.py`. Here it is
  the operator's clock that differs from all nodes'.
"""


def line(told: Told) -> str:
    """One fault for the terminal."""
    return f"{told.fault.name}: lasted {told.lasted:.0f} s, healed after {told.healed:.0f} s; {told.during}"


def document(told: Sequence[Told], *, where: str, took: float) -> str:
    """The whole page."""
    lines = [HEAD, f"`make faults` on {where}: {len(told)} faults in {took:.0f} s.\n"]
    lines.append(f"Before and after each: {told[0].before}.\n")
    lines += ["| fault | lasted | claimed meanwhile | healed |", "| --- | --- | --- | --- |"]
    for one in told:
        if one.after != one.before:
            raise AssertionError(f"{one.fault.name}: {one.before} became {one.after}")
        cells = [one.fault.what, f"{one.lasted:.0f} s", one.during.replace("|", "\\|"), f"{one.healed:.0f} s"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", TAIL])
