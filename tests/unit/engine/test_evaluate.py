# SPDX-License-Identifier: MIT
"""The engine by the rows of tests/tables/engine.yaml, and what its evidence must be."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.engine.evaluate import evaluate
from kubectl_pacto.engine.ladder import derive_status, summarize
from kubectl_pacto.engine.layers import validate
from kubectl_pacto.model.evidence import SHAPES, EvidenceSet, Kind, Observation, Outcome, encode_evidence
from tests.support.builders import AT, inline_contract
from tests.support.tables import rows


def observation(text: str) -> Observation:
    kind, subject, outcome, *pairs = text.split()
    value: dict[str, bool | str] = {}
    for pair in pairs:
        name, _, word = pair.partition("=")
        value[name] = {"true": True, "false": False}.get(word, word)
    return Observation(Kind(kind), subject, Outcome(outcome), AT, value or None, why="as told")


def evidence(row: dict[str, Any]) -> EvidenceSet:
    lines = dict(enumerate(row["evidence"])) | row.get("change", {})
    return EvidenceSet("shop/shop", "", AT, tuple(observation(text) for text in lines.values() if text))


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in rows("engine")])
def test_row(row: dict[str, Any]) -> None:
    contract = validate(inline_contract(row["contract"])).contract
    assert contract is not None
    verdict = evaluate(contract, evidence(row))
    status = derive_status(
        summarize(verdict.findings), evaluated=verdict.evaluated, required=verdict.required
    )
    found = {
        "findings": [f"{item.severity} {item.code} {item.subject}" for item in verdict.findings],
        "coverage": [verdict.evaluated, verdict.required],
        "status": status.value,
    }
    assert {key: found[key] for key in row["expect"]} == row["expect"]
    assert all(len(item.evidence) == 1 for item in verdict.findings)
    assert all(item.category for item in verdict.findings)


def test_findings_do_not_depend_on_the_order_of_evidence() -> None:
    row = next(row for row in rows("engine") if row["name"] == "the order of findings is the engine's")
    contract = validate(inline_contract(row["contract"])).contract
    assert contract is not None
    backwards = {**row, "evidence": row["evidence"][::-1]}
    assert evaluate(contract, evidence(row)).findings == evaluate(contract, evidence(backwards)).findings


def test_coverage_below_what_is_required_is_unknown_without_any_finding() -> None:
    assert derive_status(summarize(()), evaluated=1, required=2).value == "Unknown"


@pytest.mark.parametrize(
    ("outcome", "value"),
    [
        (Outcome.OBSERVED, None),
        (Outcome.STALE, {"type": "openapi", "present": True}),
        (Outcome.OBSERVED, {"present": True}),
        (Outcome.OBSERVED, {"type": "openapi", "present": True, "more": True}),
        (Outcome.OBSERVED, {"type": "openapi", "present": "yes"}),
    ],
)
def test_an_observation_that_breaks_its_shape_cannot_be(outcome: Outcome, value: Any) -> None:
    with pytest.raises(ValueError, match="InterfaceObserved of api"):
        Observation(Kind.INTERFACE, "api", outcome, AT, value)


def test_an_observation_is_about_something_and_from_someone() -> None:
    with pytest.raises(ValueError, match="subject"):
        Observation(Kind.INTERFACE, "", Outcome.STALE, AT)
    with pytest.raises(ValueError, match="collector"):
        Observation(Kind.INTERFACE, "api", Outcome.STALE, AT, collector="")


def test_no_question_is_answered_twice() -> None:
    one = Observation(Kind.INTERFACE, "api", Outcome.STALE, AT)
    with pytest.raises(ValueError, match="one kind and subject"):
        EvidenceSet("shop/shop", "", AT, (one, one))


def test_every_kind_has_a_shape() -> None:
    assert set(SHAPES) == set(Kind)


def test_an_observation_without_a_value_has_no_value_field() -> None:
    raw = encode_evidence(
        EvidenceSet("a/b", "r", AT, (Observation(Kind.INTERFACE, "api", Outcome.STALE, AT),))
    )
    assert raw["observations"][0] == {
        "kind": "InterfaceObserved",
        "subject": {"kind": "interface", "name": "api"},
        "outcome": "Stale",
        "provenance": {"collector": "k8s-observer", "detectedAt": "2026-10-18T09:12:44Z"},
    }
