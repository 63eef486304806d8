# SPDX-License-Identifier: MIT
"""Rows of tests/tables: each has a name, which is the test's id, and an expectation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from kubectl_pacto.conformance.check import Checked
from kubectl_pacto.model.evidence import Kind, Observation
from kubectl_pacto.model.instant import parse_instant
from tests.support.builders import AT

TABLES = Path(__file__).parent.parent / "tables"
WORDS = {
    ("interface", True): "present",
    ("interface", False): "absent",
    ("dependency", True): "reachable",
    ("dependency", False): "unreachable",
    ("capability", True): "present",
    ("capability", False): "absent",
    ("configuration", True): "present",
    ("configuration", False): "absent",
}
MAIN_KINDS = (Kind.INTERFACE, Kind.DEPENDENCY, Kind.CAPABILITY, Kind.CONFIGURATION)
FACTS = {
    "protocol": (Kind.INTERFACE_PROTOCOL, "protocol"),
    "exposure": (Kind.INTERFACE_EXPOSURE, "exposure"),
    "version": (Kind.DEPENDENCY_VERSION, "version"),
    "workload": (Kind.WORKLOAD, "type"),
    "durable": (Kind.PERSISTENCE, "durable"),
    "scope": (Kind.PERSISTENCE_SCOPE, "scope"),
}


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table; names are unique."""
    found: list[dict[str, Any]] = yaml.safe_load((TABLES / f"{name}.yaml").read_text())
    names = [row["name"] for row in found]
    assert len(set(names)) == len(names), f"{name}: two rows of one name"
    return found


def answer(observation: Observation | None) -> str:
    """An observation in one word, with its collector."""
    if observation is None:
        return "missing"
    word = observation.outcome.value.lower()
    if observation.value is not None:
        decisive = "reachable" if observation.kind is Kind.DEPENDENCY else "present"
        word = WORDS[observation.subject_kind, observation.value[decisive] is True]
        if observation.value.get("conformant") is False and word == "present":
            word = "mismatch"
    return f"{word} by {observation.collector}"


def _fact(checked: Checked, name: str) -> str | None:
    kind, field = FACTS[name]
    assert checked.evidence is not None
    for item in checked.evidence.observations:
        if item.kind is kind:
            return str(item.value[field]).lower() if item.value else item.outcome.value.lower()
    return None


def describe(checked: Checked, expect: dict[str, Any]) -> dict[str, Any]:
    """What a check found, in the words and to the extent of an expectation."""
    return {key: _look(checked, key, wanted) for key, wanted in expect.items()}


def _look(checked: Checked, key: str, wanted: Any) -> Any:
    if "/" in key:
        whole = answer(_find(checked, key))
        return whole if " by " in str(wanted) else whole.partition(" by ")[0]
    if key == "why":
        text = " ".join(item.why for item in _observations(checked))
        return wanted if wanted in text else text
    return _fact(checked, key) if key in FACTS else _STATUS[key](checked)


def _observations(checked: Checked) -> tuple[Observation, ...]:
    return checked.evidence.observations if checked.evidence else ()


def _find(checked: Checked, key: str) -> Observation | None:
    kind, _, subject = key.partition("/")
    for item in _observations(checked):
        if item.kind in MAIN_KINDS and (item.subject_kind, item.subject) == (kind, subject):
            return item
    return None


def _windows(checked: Checked) -> dict[str, float]:
    return {
        f"{item['kind']}/{item['subject']}": round(AT - parse_instant(item["firstObservedNegativeAt"]), 3)
        for item in checked.status.get("observationWindows", ())
    }


def _all(checked: Checked, name: str) -> list[Any]:
    return [item[name] for item in checked.status.get("findings", ())]


def _unverified(checked: Checked) -> list[str]:
    unverified = checked.status.get("evaluationCoverage", {}).get("unverified", ())
    return [item["contractPath"] for item in unverified]


def _levels(checked: Checked) -> dict[str, int]:
    evidence = checked.status["kernelEvidence"]
    return {name: count for name, count in evidence.items() if name != "reasons" and count}


_STATUS: dict[str, Callable[[Checked], Any]] = {
    "windows": _windows,
    "undeclared": lambda checked: [
        item.subject for item in _observations(checked) if item.kind is Kind.UNDECLARED_PEER
    ],
    "findings": lambda checked: _all(checked, "code"),
    "severities": lambda checked: _all(checked, "severity"),
    "paths": lambda checked: _all(checked, "contractPath"),
    "unverified": _unverified,
    "coverage": lambda checked: [
        checked.status["evaluationCoverage"][name] for name in ("evaluated", "required")
    ],
    "kernel": _levels,
    "reasons": lambda checked: checked.status["kernelEvidence"]["reasons"],
    "next": lambda checked: None if checked.next_check is None else round(checked.next_check - AT, 3),
    "status": lambda checked: checked.status["contractStatus"],
    "kinds": lambda checked: [item.kind.value for item in _observations(checked)],
    "subjects": lambda checked: [item.subject for item in _observations(checked)],
    "target": lambda checked: checked.evidence.subject if checked.evidence else None,
    "collectors": lambda checked: _all(checked, "evidenceRefs")[0][0]["collector"],
    "observedRuntime": lambda checked: checked.status.get("observedRuntime"),
    "messages": lambda checked: _all(checked, "message"),
}
