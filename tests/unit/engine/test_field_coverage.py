# SPDX-License-Identifier: MIT
"""The field coverage inventory against the contract's schema, the registry and the tests it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.engine.schema import CONTRACT_SCHEMA
from kubectl_pacto.explain.fields import Field, field_coverage_page, fields
from kubectl_pacto.model.evidence import Kind
from kubectl_pacto.model.finding import REGISTRY, Category, category_of
from tests.support.builders import run
from tests.support.tables import rows

DOC = Path(__file__).parents[3] / "docs" / "field-coverage.md"
JUDGED = [item for item in fields() if item.finding]


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of a schema's fields that hold no further ones."""
    if schema.get("type") == "array":
        yield from leaves(schema["items"], f"{path}[]")
    elif schema.get("properties"):
        for name, inner in schema["properties"].items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    else:
        yield path


def covers(entry: str, leaf: str) -> bool:
    """Whether an entry is about a leaf or something above it."""
    return leaf == entry or leaf.startswith((f"{entry}.", f"{entry}["))


def test_field_coverage_has_every_field_of_the_schema_once() -> None:
    entries = [item.field for item in fields()]
    assert len(set(entries)) == len(entries)
    specific = [entry for entry in entries if entry != "dependencies"]
    for leaf in leaves(CONTRACT_SCHEMA):
        assert len([entry for entry in specific if covers(entry, leaf)]) == 1, leaf
    for entry in entries:
        assert any(covers(entry, leaf) for leaf in leaves(CONTRACT_SCHEMA)), entry


@pytest.mark.parametrize("item", fields(), ids=lambda item: item.field)
def test_field_coverage_says_what_contradicts_a_field_or_why_nothing_does(item: Field) -> None:
    if item.finding:
        assert not item.why
        assert category_of(item.finding) is Category.RUNTIME_DRIFT
        assert item.evidence in {kind.value for kind in Kind}
    else:
        assert item.why
        assert not item.evidence
        assert not item.row


@pytest.mark.parametrize("item", JUDGED, ids=lambda item: item.field)
def test_field_coverage_names_a_row_that_shows_the_finding(item: Field) -> None:
    table, _, name = item.row.partition(": ")
    (row,) = [row for row in rows(table) if row["name"] == name]
    checked = run(row)
    assert item.finding in [finding["code"] for finding in checked.status["findings"]]
    assert checked.evidence is not None
    assert item.evidence in {observation.kind.value for observation in checked.evidence.observations}


def test_field_coverage_knows_every_finding_of_the_runtime_and_every_kind_of_evidence() -> None:
    drift = {code for code, (category, _) in REGISTRY.items() if category is Category.RUNTIME_DRIFT}
    assert {item.finding for item in JUDGED} == drift
    assert {item.evidence for item in JUDGED} == {kind.value for kind in Kind}


def test_field_coverage_is_documented() -> None:
    assert DOC.read_text() == field_coverage_page()
