# SPDX-License-Identifier: MIT
"""Passes of `evaluate` over the demo's cluster, until the expected verdict stands.

Each pass is the evaluation that `kubectl pacto evaluate -f` makes of the same objects: statuses, and
the observation windows in them, are carried from one to the next. No clock is read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.cli.demo.objects import NAMESPACE, Name, Raw, statuses_of
from kubectl_pacto.cli.evaluate_cmd import evaluate_all
from kubectl_pacto.cli.render.results import render
from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.model.snapshot import KernelOptions, Options

WINDOW_SECONDS: Final = 5.0
STALENESS_SECONDS: Final = 5.0
COMPLIANT: Final = "Compliant"


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that the demo is there to show."""

    code: str
    pacto: str
    subject: str
    collector: str

    def __str__(self) -> str:
        return f"{self.code} of {self.pacto}, {self.subject} (collector {self.collector})"


@dataclass(frozen=True, slots=True)
class ExpectedStatus:
    """A contract status that the demo is there to show."""

    pacto: str
    status: str

    def __str__(self) -> str:
        return f"{self.pacto} {self.status}"


EXPECTED: Final = (
    Expected("INTERFACE_ABSENT", "inventory", "interface/api", "k8s-observer+ebpf"),
    Expected("DEPENDENCY_UNREACHABLE", "orders", "dependency/inventory", "k8s-observer+ebpf"),
    Expected("DEPENDENCY_UNDECLARED", "orders", "dependency/audit", "ebpf"),
)
EXPECTED_STATUSES: Final = (ExpectedStatus("payments", COMPLIANT), ExpectedStatus("audit", COMPLIANT))


@dataclass(slots=True)
class Judge:
    """What the passes so far gave; `first_seen` when each expected thing came, `at` the last pass."""

    statuses: dict[Name, Raw] = field(default_factory=dict)
    first_seen: dict[Expected | ExpectedStatus, float] = field(default_factory=dict)
    at: float = 0.0
    passes: int = 0

    def judge(self, objects: Iterable[Raw], at: float) -> None:
        """One pass at a moment, POSIX seconds."""
        self.statuses = statuses_of(evaluate(objects, at))
        self.at = at
        self.passes += 1
        for one in (*EXPECTED, *EXPECTED_STATUSES):
            if self.stands(one):
                self.first_seen.setdefault(one, at)
            else:
                self.first_seen.pop(one, None)  # it came and went: what counts is since when it stands

    def stands(self, one: Expected | ExpectedStatus) -> bool:
        """Whether the last pass gave it."""
        if isinstance(one, ExpectedStatus):
            return self.status(one.pacto).get("contractStatus") == one.status
        return self.finding(one) is not None

    def status(self, pacto: str) -> Raw:
        """The last status of a Pacto of the demo."""
        return self.statuses.get((NAMESPACE, pacto), {})

    def finding(self, one: Expected) -> Raw | None:
        """The expected finding in the last status."""
        for finding in self.status(one.pacto).get("findings", ()):
            collectors = [ref["collector"] for ref in finding.get("evidenceRefs", ())]
            if (finding["code"], finding.get("subject")) == (one.code, one.subject):
                return finding if collectors == [one.collector] else None
        return None

    def missing(self) -> list[Expected | ExpectedStatus]:
        """What the last pass did not give."""
        return [one for one in (*EXPECTED, *EXPECTED_STATUSES) if not self.stands(one)]


def evaluate(objects: Iterable[Raw], at: float, *, kernel: bool = True) -> list[Raw]:
    """What `evaluate -o json` prints for these objects at a moment."""
    found = Objects()
    for item in objects:
        found.add(item, file="the demo's objects")
    options = Options(
        window=WINDOW_SECONDS, kernel=KernelOptions(enabled=kernel, staleness=STALENESS_SECONDS)
    )
    printed = render(evaluate_all(found.cluster(), at=at, options=options), "json")
    results: list[Raw] = json.loads(printed)
    return results


def kubernetes_alone(objects: Iterable[Raw], at: float) -> dict[str, str]:
    """The contract status of each Pacto if there were no node agent."""
    results = evaluate(objects, at, kernel=False)
    return {item["name"]: item["status"]["contractStatus"] for item in results}


def headlines(statuses: Mapping[Name, Raw]) -> dict[str, str]:
    """One line for each Pacto, to be said when it changes."""
    return {name: _headline(status) for (_, name), status in statuses.items()}


def _headline(status: Mapping[str, Any]) -> str:
    notes = [finding["code"] for finding in status.get("findings", ())]
    notes += [
        f"{window['kind']}/{window['subject']} negative, its window runs"
        for window in status.get("observationWindows", ())
        if not any(
            finding.get("subject") == f"{window['kind']}/{window['subject']}"
            and finding.get("severity") == "error"
            for finding in status.get("findings", ())
        )
    ]
    return ": ".join(filter(None, [status["contractStatus"], ", ".join(notes)]))
