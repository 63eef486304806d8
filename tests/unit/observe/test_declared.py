# SPDX-License-Identifier: MIT
"""What of a contract a status repeats."""

from __future__ import annotations

from typing import Any

from tests.support.builders import pacto, run

CONTRACT: dict[str, Any] = {
    "service": {
        "name": "shop",
        "version": "1.2.3",
        "owner": {"dri": "me@example", "contacts": [{"type": "email", "value": "a@b.example"}]},
    },
    "interfaces": [{"name": "api", "visibility": "public"}, {"name": "events", "type": "asyncapi"}],
    "dependencies": [{"name": "db", "required": False}],
    "capabilities": [{"type": "extension", "ref": "example.org/x"}],
    "configurations": [
        {
            "name": "app",
            "required": True,
            "schema": "app.json",
            "values": {"port": 80, "key": "secret://a/b"},
        },
        {"name": "far", "required": False, "ref": "oci://registry.example/config:1"},
    ],
    "policies": [{"name": "p", "schema": "p.json"}, {"name": "q", "ref": "oci://registry.example/policy:1"}],
    "readiness": {
        "expires": "2026-12-31",
        "minScore": 50,
        "claims": [
            {"id": "a", "type": "url", "status": "done", "evidence": "x", "weight": 3},
            {"id": "b", "type": "url", "status": "not-done", "evidence": "x", "weight": 1},
        ],
    },
    "metadata": {"tier": 1, "live": True, "note": "x"},
}
ROW: dict[str, Any] = {
    "contract": CONTRACT,
    "spec": {"overrides": {"configurations": [{"name": "app", "values": {"port": "81"}}]}},
    "files": {
        "openapi.yaml": "openapi: 3.0.0",
        "app.json": '{"properties": {"port": {"type": ["integer", "string"]}, "host": {"type": "string"}}}',
        "p.json": (
            '{"title": "Owned", "description": "Has an owner", "properties": {"service": {"type": "object"}}}'
        ),
    },
}


def test_a_status_repeats_what_the_contract_declares() -> None:
    status = run(ROW).status
    assert status["contractVersion"] == "1.2.3"
    assert status["contract"] == {
        "serviceName": "shop",
        "version": "1.2.3",
        "owner": {"dri": "me@example", "contacts": [{"type": "email", "value": "a@b.example"}]},
        "ownerDisplay": "me@example",
    }
    assert status["interfaces"] == [
        {"name": "api", "type": "openapi", "ref": "openapi.yaml", "visibility": "public"},
        {"name": "events", "type": "asyncapi", "ref": "openapi.yaml"},
    ]
    assert status["capabilities"] == [{"type": "extension", "ref": "example.org/x"}]
    assert status["dependencies"][0]["required"] is False
    assert status["metadata"] == {"tier": "1", "live": "true", "note": "x"}


def test_a_status_shows_configurations_and_policies_with_their_schemas() -> None:
    status = run(ROW).status
    assert status["configurations"] == [
        {
            "name": "app",
            "hasSchema": True,
            "valueKeys": ["key", "port"],
            "secretKeys": ["key"],
            "overriddenKeys": ["port"],
            "properties": [
                {"key": "host", "type": "string"},
                {"key": "key", "value": "secret://a/b"},
                {"key": "port", "value": "81", "type": "integer|string"},
            ],
        },
        {"name": "far", "hasSchema": False, "ref": "oci://registry.example/config:1"},
    ]
    assert status["policies"] == [
        {
            "name": "p",
            "hasSchema": True,
            "schema": "p.json",
            "title": "Owned",
            "description": "Has an owner",
            "properties": [{"key": "service", "type": "object"}],
        },
        {"name": "q", "hasSchema": False, "ref": "oci://registry.example/policy:1"},
    ]


def test_readiness_is_scored_and_has_a_condition() -> None:
    status = run(ROW).status
    assert {
        name: status["readiness"][name] for name in ("score", "passing", "daysRemaining", "notDoneCount")
    } == {
        "score": 75,
        "passing": True,
        "daysRemaining": 74,
        "notDoneCount": 1,
    }
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["ReadinessSatisfied"]["reason"] == "Satisfied"
    strict = {**CONTRACT["readiness"], "minScore": 80}
    below = run({**ROW, "contract": {**CONTRACT, "readiness": strict}}).status
    assert {item["type"]: item["reason"] for item in below["conditions"]}[
        "ReadinessSatisfied"
    ] == "BelowMinScore"
    expired = {**CONTRACT["readiness"], "expires": "2026-10-17"}
    late = run({**ROW, "contract": {**CONTRACT, "readiness": expired}}).status
    assert {item["type"]: item["reason"] for item in late["conditions"]}["ReadinessSatisfied"] == "Expired"


def test_a_contract_without_sections_has_empty_lists() -> None:
    status = run({"contract": {}}).status
    for name in ("interfaces", "capabilities", "dependencies", "configurations", "policies", "findings"):
        assert status[name] == []
    assert "readiness" not in status


def test_a_condition_keeps_its_transition_while_its_status_stays() -> None:
    raw = pacto({"contract": {}})
    raw["metadata"]["generation"] = 4
    before = "2026-01-01T00:00:00Z"
    raw["status"]["conditions"] = [
        {"type": "ContractValid", "status": "True", "reason": "Parsed", "lastTransitionTime": before},
        {"type": "RuntimeObserved", "status": "False", "reason": "x", "lastTransitionTime": before},
        {"type": "Custom", "status": "True", "observedGeneration": 2, "lastTransitionTime": before},
    ]
    raw["status"]["currentRevision"] = "shop-1-0-0-abc"
    status = run({}, [raw]).status
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["ContractValid"]["lastTransitionTime"] == before
    assert conditions["ContractValid"]["observedGeneration"] == 4
    assert conditions["RuntimeObserved"]["lastTransitionTime"] == "2026-10-18T09:12:44Z"
    assert conditions["Custom"]["observedGeneration"] == 2
    assert status["currentRevision"] == "shop-1-0-0-abc"
    assert status["observedGeneration"] == 4


def test_a_read_that_failed_is_a_condition() -> None:
    status = run({"unreadable": {"Service/shop/shop": "forbidden"}}).status
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["RuntimeObserved"]["status"] == "False"
    assert conditions["RuntimeObserved"]["message"] == "forbidden"


def test_what_of_a_target_does_not_exist_is_said() -> None:
    status = run({"workload": None}).status
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["RuntimeObserved"]["status"] == "True"
    assert conditions["RuntimeObserved"]["message"].endswith("; there is no Deployment shop/shop")
