# SPDX-License-Identifier: MIT
"""The demo's result, as a text for a person or as JSON. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.cli.demo.facts import Scene, facts_of
from kubectl_pacto.cli.demo.judge import EXPECTED, EXPECTED_STATUSES, Expected, ExpectedStatus, Judge
from kubectl_pacto.cli.demo.objects import APPS

WIDTH: Final = 100
WAYS: Final = {
    "payments": "serves the port of its interface",
    "inventory": "passes its readiness probe, never opens its port",
    "audit": "serves its port, nobody declares it",
    "orders": "calls payments, inventory, and the undeclared audit",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the demo ended: `started` when it began, POSIX seconds; `alone` the verdict without kernel."""

    judge: Judge
    scene: Scene
    started: float
    alone: Mapping[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether everything expected stands."""
        return not self.judge.missing()

    @property
    def seconds(self) -> float:
        """From the start to the moment since which all of the verdict stands, or to the last pass."""
        last = max(self.judge.first_seen.values(), default=self.judge.at)
        return (last if self.is_complete else self.judge.at) - self.started

    def after(self, one: Expected | ExpectedStatus) -> float:
        """From the start until it stood."""
        return self.judge.first_seen[one] - self.started


def render(outcome: Outcome, form: str) -> str:
    """The outcome in a form, table or json; it ends with a newline."""
    if form == "json":
        return json.dumps(as_data(outcome), indent=2, ensure_ascii=False) + "\n"
    return "\n".join(_lines(outcome)) + "\n"


def as_data(outcome: Outcome) -> dict[str, Any]:
    """What `-o json` prints."""
    judge = outcome.judge
    return {
        "complete": outcome.is_complete,
        "seconds": round(outcome.seconds, 3),
        "missing": [str(one) for one in judge.missing()],
        "kubernetesAlone": dict(outcome.alone),
        "findings": [_finding_data(outcome, one) for one in EXPECTED if judge.stands(one)],
        "statuses": [
            {"namespace": namespace, "name": name, "status": status}
            for (namespace, name), status in sorted(judge.statuses.items())
        ],
    }


def _finding_data(outcome: Outcome, one: Expected) -> dict[str, Any]:
    status = outcome.judge.status(one.pacto)
    return {
        "pacto": one.pacto,
        **(outcome.judge.finding(one) or {}),
        "restsOn": [{"from": source, "fact": fact} for source, fact in facts_of(one, outcome.scene, status)],
        "secondsFromStart": round(outcome.after(one), 3),
    }


def _lines(outcome: Outcome) -> Iterator[str]:
    yield from _summary(outcome)
    for one in EXPECTED:
        if outcome.judge.stands(one):
            yield ""
            yield from _finding(outcome, one)
    for other in EXPECTED_STATUSES[:1]:
        if outcome.judge.stands(other):
            yield ""
            after = f"({outcome.after(other):.1f} s after the start)"
            yield f"{'ok':<8} {other.pacto} keeps its contract  {after}"
            yield from _facts(outcome, other)
    yield ""
    if outcome.is_complete:
        yield f"All {len(EXPECTED)} findings stand, {outcome.seconds:.1f} s after the start."
    else:
        yield from _not_seen(outcome)


def _summary(outcome: Outcome) -> Iterator[str]:
    rows = [("PACTO", "KUBERNETES ALONE", "WITH THE KERNEL", "WHAT ITS POD DOES")]
    for app in APPS:
        status = outcome.judge.status(app.name).get("contractStatus", "-")
        rows.append((app.name, outcome.alone.get(app.name, "-"), status, WAYS[app.name]))
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, (9, 16, 15, 0), strict=True)).rstrip()


def _finding(outcome: Outcome, one: Expected) -> Iterator[str]:
    finding = outcome.judge.finding(one) or {}
    after = f"({outcome.after(one):.1f} s after the start)"
    yield f"{finding['severity']:<8} {one.code}  {one.pacto}, {one.subject}  {after}"
    yield f"         {'collector':<11}{one.collector}"
    yield from _facts(outcome, one)


def _facts(outcome: Outcome, one: Expected | ExpectedStatus) -> Iterator[str]:
    for source, fact in facts_of(one, outcome.scene, outcome.judge.status(one.pacto)):
        yield from textwrap.wrap(
            fact,
            WIDTH,
            initial_indent=f"         {source:<11}",
            subsequent_indent=" " * 20,
            break_on_hyphens=False,
        )


def _not_seen(outcome: Outcome) -> Iterator[str]:
    yield f"Not seen within {outcome.seconds:.1f} s:"
    for one in outcome.judge.missing():
        status = outcome.judge.status(one.pacto)
        yield f"  {one}"
        for finding in status.get("findings", ()):
            if isinstance(one, ExpectedStatus) or finding.get("subject") == one.subject:
                yield f"      instead {finding['code']}: {finding['message']}"
        for source, fact in facts_of(one, outcome.scene, status):
            yield f"      {source}: {fact}"
