# SPDX-License-Identifier: MIT
"""Small functions by their rows, cases that no contract can reach, and that no edge case is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubectl_pacto.model.contract import Binding, Capability, Contract
from kubectl_pacto.model.probe import Protocol
from kubectl_pacto.model.ranges import in_range
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.capability import read_health, read_metrics
from kubectl_pacto.observe.evidence import observe
from kubectl_pacto.observe.protocol import agree, classify
from kubectl_pacto.observe.reading import Answer
from kubectl_pacto.observe.resolve import base_ref
from tests.support.builders import AT, cluster, options
from tests.support.tables import TABLES, rows

CALLS: dict[str, Callable[..., object]] = {
    "base_ref": base_ref,
    "in_range": in_range,
    "classify": lambda text: classify(bytes.fromhex(text)).value,
}


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in rows("functions")])
def test_row(row: dict[str, Any]) -> None:
    assert CALLS[row["call"]](*row["args"]) == row["result"]


def snapshot(row: dict[str, Any], contract: Contract) -> Snapshot:
    built = cluster(row)
    mine = next(item for item in built.pactos if item.namespace == "shop")
    return Snapshot(AT, mine, contract, built, options(row))


# cases 54 and 75: a binding that the schema of a contract does not let through
@pytest.mark.parametrize("reader", [read_health, read_metrics])
def test_a_binding_of_another_type_is_unsupported(reader: Callable[..., Any]) -> None:
    item = Capability("health", binding=Binding("grpc", "api"))
    look = snapshot({"options": {"metrics": True}}, Contract("shop", "1.0.0", capabilities=(item,)))
    assert reader(look, item).reading.answer is Answer.UNSUPPORTED


# case 104: without a name of a workload; a target without any is reference-only and never gets here
def test_without_the_name_of_a_workload_there_is_no_observation() -> None:
    look = snapshot({}, Contract("shop", "1.0.0", workload="service"))
    nameless = replace(look, pacto=replace(look.pacto, workload_name=""))
    assert [item.kind for item in observe(nameless).evidence.observations] == []


def test_a_reference_only_pacto_is_not_evaluated() -> None:
    from tests.support.builders import run

    checked = run({"reference": True, "windows": {"interface/api": 300}})
    assert checked.status["contractStatus"] == "Reference"
    assert checked.evidence is None
    assert "findings" not in checked.status
    assert "observationWindows" not in checked.status
    assert checked.status["conditions"][0]["reason"] == "ReferenceOnly"
    assert set(checked.status["summary"].values()) == {0}


def test_an_invalid_contract_is_one_error() -> None:
    from tests.support.builders import run

    checked = run({"contractRef": {"inline": "pactoVersion: '2.0'"}})
    assert checked.status["contractStatus"] == "Invalid"
    assert checked.status["summary"]["errorCount"] == 1
    assert checked.status["validation"]["valid"] is False
    assert checked.status["validation"]["errors"][0]["code"] == "SCHEMA_VIOLATION"
    assert checked.status["conditions"][0]["status"] == "False"
    assert "findings" not in checked.status


def test_warnings_of_a_contract_count_and_come_first() -> None:
    from tests.support.builders import run

    ref = "oci://registry.example/db:1.2.0"
    checked = run({"contract": {"dependencies": [{"name": "db", "ref": ref}]}, "providers": {"db": {}}})
    (finding,) = checked.status["findings"]
    assert finding["code"] == "TAG_NOT_DIGEST"
    assert "subject" not in finding
    assert finding["message"].startswith(f"dependency db: the tag of {ref} can be moved")
    assert checked.status["contractStatus"] == "Warning"
    assert checked.status["validation"]["warnings"][0]["path"] == "dependencies[0].ref"


def test_two_answers_that_differ_are_none() -> None:
    assert agree(Protocol.TLS, Protocol.TLS) is Protocol.TLS
    assert agree(Protocol.TLS, Protocol.HTTP1) is Protocol.NONE


def test_every_edge_case_of_the_public_project_has_a_row() -> None:
    numbered = {
        number
        for path in TABLES.glob("*.yaml")
        if path.stem != "contract"
        for row in rows(path.stem)
        for number in row.get("cases", ())
    }
    assert numbered | {54, 104} == set(range(1, 131))
