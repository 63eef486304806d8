# SPDX-License-Identifier: MIT
"""The Pacto CRDs: structural, described, and wide enough for every status that checks produce."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from kubectl_pacto.controller.generate import crds
from kubectl_pacto.controller.pacto_schema import pacto_crd, revision_crd
from kubectl_pacto.engine.ladder import ContractStatus
from tests.support.builders import run
from tests.support.tables import TABLES as TABLE_FILES
from tests.support.tables import rows

TABLES = tuple(sorted(path.stem for path in TABLE_FILES.glob("*.yaml")))
ROWS = [(table, row) for table in TABLES for row in rows(table)]


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    (version,) = crd["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def closed(part: Any) -> Any:
    """The schema as it prunes: an unknown field is an error here, silently dropped by a server."""
    if isinstance(part, list):
        return [closed(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    found = {key: closed(inner) for key, inner in part.items()}
    if isinstance(part.get("properties"), dict) and part.get("type") == "object":
        found["additionalProperties"] = False
    return found


STATUS = closed(schema_of(pacto_crd())["properties"]["status"])
SPEC = closed(schema_of(pacto_crd())["properties"]["spec"])
# made once: validate() would check the schema itself each time
STATUS_RULES, SPEC_RULES = jsonschema.Draft202012Validator(STATUS), jsonschema.Draft202012Validator(SPEC)


def parts(part: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below one, by its path."""
    for key, inner in part.get("properties", {}).items():
        yield f"{path}.{key}", inner
        yield from parts(inner, f"{path}.{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            yield f"{path}[]", part[key]
            yield from parts(part[key], f"{path}[]")


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{table}: {row['name']}") for table, row in ROWS])
def test_the_status_of_a_row_is_valid_and_nothing_of_it_is_pruned(row: dict[str, Any]) -> None:
    STATUS_RULES.validate(dict(run(row).status))


def test_every_verdict_is_in_the_schema() -> None:
    allowed = STATUS["properties"]["contractStatus"]["enum"]
    assert set(allowed) == {item.value for item in ContractStatus}


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_a_schema_is_structural_and_described(crd: dict[str, Any]) -> None:
    for path, part in parts(schema_of(crd)):
        assert "type" in part or part.get("x-kubernetes-int-or-string"), path
        if path.count(".") > 1 or path in (".spec", ".status"):
            assert part.get("description") or path.endswith("[]"), path
        if part.get("type") == "array":
            assert part["x-kubernetes-list-type"] in ("atomic", "map"), path
        for key in part.get("x-kubernetes-list-map-keys", ()):
            assert key in part["items"]["required"], path


@pytest.mark.parametrize(
    "spec",
    [
        {"contractRef": {"oci": "oci://registry.example/a"}},
        {"contractRef": {"inline": "x"}, "checkIntervalSeconds": 30},
        {
            "contractRef": {"oci": "oci://r.example/a", "pullSecretRef": "pull"},
            "target": {
                "serviceName": "shop",
                "workloadRef": {"name": "shop", "kind": "StatefulSet"},
                "interfaceBindings": [
                    {"interface": "api", "servicePort": 80},
                    {"interface": "admin", "servicePort": "admin"},
                ],
                "configBindings": [
                    {
                        "configuration": "c",
                        "kind": "ConfigMap",
                        "name": "shop",
                        "key": "a.yaml",
                        "format": "yaml",
                    }
                ],
            },
            "overrides": {"configurations": [{"name": "c", "values": {"a": "1"}}]},
        },
    ],
)
def test_a_good_spec_is_valid(spec: dict[str, Any]) -> None:
    SPEC_RULES.validate(spec)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"contractRef": {}, "checkIntervalSeconds": 29},
        {"contractRef": {}, "target": {"workloadRef": {"kind": "Deployment"}}},
        {"contractRef": {}, "target": {"workloadRef": {"name": "a", "kind": "DaemonSet"}}},
        {"contractRef": {}, "target": {"interfaceBindings": [{"interface": "api"}]}},
        {"contractRef": {}, "target": {"interfaceBindings": [{"interface": "api", "servicePort": True}]}},
        {
            "contractRef": {},
            "target": {"configBindings": [{"configuration": "c", "kind": "Pod", "name": "a"}]},
        },
        {"contractRef": {}, "overrides": {"configurations": [{"name": "c", "values": {}}]}},
    ],
)
def test_a_wrong_spec_is_not(spec: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        SPEC_RULES.validate(spec)


def test_the_workload_kind_has_no_default() -> None:
    assert "default" not in SPEC["properties"]["target"]["properties"]["workloadRef"]["properties"]["kind"]


def test_the_columns_are_upstreams() -> None:
    def names(crd: dict[str, Any]) -> list[str]:
        (version,) = crd["spec"]["versions"]
        return [one["name"] for one in version["additionalPrinterColumns"] if not one.get("priority")]

    shown = ["Status", "Service", "Version", "Errors", "Warnings", "Last Reconciled", "Age"]
    assert names(pacto_crd()) == shown
    assert names(revision_crd()) == ["Version", "Pacto", "Resolved", "Age"]
