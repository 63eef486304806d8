# SPDX-License-Identifier: MIT
"""A contract through its three layers, by the rows of tests/tables/contract.yaml."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.engine.crossfield import check_contract, is_plain_path
from kubectl_pacto.engine.layers import validate
from kubectl_pacto.engine.parse import parse_contract
from kubectl_pacto.engine.policy import enforce_policies
from kubectl_pacto.engine.readiness import score_readiness
from kubectl_pacto.model.contract import (
    Capability,
    Claim,
    Configuration,
    Contract,
    Interface,
    Policy,
    Readiness,
    State,
)
from kubectl_pacto.model.finding import REGISTRY, Category, Severity, category_of, severity_of
from kubectl_pacto.model.ociref import parse_oci_ref
from tests.support.tables import rows

BASE = {"pactoVersion": "2.0", "service": {"name": "shop", "version": "1.0.0"}}


def contract_text(row: dict[str, Any]) -> str:
    if "text" in row:
        return str(row["text"])
    return yaml.safe_dump({**BASE, **row.get("patch", {})}, sort_keys=False)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in rows("contract")])
def test_row(row: dict[str, Any]) -> None:
    files = {name: text.encode() for name, text in row["files"].items()} if "files" in row else None
    overrides = tuple(row.get("overrides", {}).items())
    validated = validate(contract_text(row), overrides=overrides, files=files)
    assert [f"{item.code} {item.path}" for item in validated.issues] == row["issues"]
    assert (validated.contract is not None) is row.get("valid", not row["issues"])
    assert all(item.message for item in validated.issues)


def test_an_issue_says_where_in_the_text() -> None:
    text = "pactoVersion: '2.0'\nservice:\n  name: shop\n  version: 1.0.0\nworkload: daemon\n"
    (issue,) = parse_contract(text).issues
    assert issue.message == "'daemon' is not one of ['service', 'job', 'scheduled'] (line 5, column 1)"


def test_an_unknown_field_is_told_with_those_that_are_known() -> None:
    (issue,) = parse_contract("pactoVersion: '2.0'\nservice: {name: a, version: 1.0.0, port: 8}\n").issues
    assert "unknown field 'port'; this object takes name, owner, version (line 2" in issue.message


def test_nested_aliases_do_not_blow_up() -> None:
    lines = ["pactoVersion: '2.0'", "service: {name: a, version: 1.0.0}", "metadata:", "  a0: &a0 [x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (issue,) = parse_contract("\n".join(lines)).issues
    assert "too many nodes" in issue.message


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert parse_contract(text).contract is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["name", "type", "ref", "required", "schema", "binding", "interface", "claims", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(
        ["interfaces", "configurations", "policies", "dependencies", "state", "capabilities", "readiness"]
    ),
)
def test_no_document_raises(value: Any, section: str) -> None:
    validated = validate(yaml.safe_dump({**BASE, section: value}), files={})
    assert (validated.contract is None) == bool(validated.errors)


def codes(contract: Contract) -> list[str]:
    return [issue.code for issue in check_contract(contract, None)]


def test_layer_two_stands_on_its_own_where_layer_one_would_have_spoken_first() -> None:
    base = Contract("shop", "1.0.0")
    soap: Any = "soap"
    assert codes(replace(base, interfaces=(Interface("a", soap, ""),))) == [
        "INVALID_INTERFACE_TYPE",
        "INTERFACE_REF_REQUIRED",
    ]
    assert codes(replace(base, capabilities=(Capability("tracing"),))) == ["INVALID_CAPABILITY_TYPE"]
    assert codes(replace(base, capabilities=(Capability("extension"),))) == ["CAPABILITY_REF_REQUIRED"]
    assert codes(replace(base, policies=(Policy("p", schema="x", target="runtime"),))) == [
        "UNSUPPORTED_POLICY_TARGET"
    ]
    assert codes(replace(base, configurations=(Configuration("c", True, values={}),))) == [
        "VALUES_WITHOUT_SCHEMA"
    ]
    assert codes(replace(base, state=State("stateless", "local", "persistent", "low"))) == [
        "STATELESS_PERSISTENT_CONFLICT"
    ]


def test_references_are_enforced_with_a_resolver() -> None:
    contract = Contract("shop", "1.0.0", policies=(Policy("p", ref="a"), Policy("q", ref="gone")))
    bundles: dict[str, dict[str, bytes]] = {
        "a": {"policy/schema.json": b'{"required": ["workload"]}', "pacto.yaml": b"policies: [{ref: b}]"},
        "b": {"pacto.yaml": b"policies: [{ref: a}]"},
        "empty": {},
    }
    issues = enforce_policies(contract, BASE, {}, bundles.get)
    assert [(issue.code, issue.path) for issue in issues] == [
        ("POLICY_REF_CYCLE", "policies[0]"),
        ("POLICY_REF_UNRESOLVED", "policies[1]"),
        ("POLICY_VIOLATION", ""),
    ]
    assert issues[0].message == "a -> b -> a"
    empty = enforce_policies(
        Contract("s", "1.0.0", policies=(Policy("p", ref="empty"),)), BASE, {}, bundles.get
    )
    assert [issue.code for issue in empty] == ["POLICY_REF_UNRESOLVED"]


def test_every_code_has_a_category_and_only_these_are_no_errors() -> None:
    assert Category.NONE not in {category for category, _ in REGISTRY.values()}
    lenient = {code for code in REGISTRY if severity_of(code) is Severity.WARNING}
    assert lenient == {"TAG_NOT_DIGEST", "POLICY_REF_NOT_ENFORCED", "DEPENDENCY_UNDECLARED"}
    unknown = {code for code in REGISTRY if severity_of(code) is Severity.UNKNOWN}
    assert unknown == {code for code in REGISTRY if category_of(code) is Category.INCONCLUSIVE}
    assert (category_of("NO_SUCH_CODE"), severity_of("NO_SUCH_CODE")) == (Category.NONE, Severity.ERROR)


def test_every_contract_code_has_a_row_or_a_test_of_its_own() -> None:
    rowed = {issue.partition(" ")[0] for row in rows("contract") for issue in row["issues"]}
    alone = {
        "INVALID_INTERFACE_TYPE",
        "INTERFACE_REF_REQUIRED",
        "INVALID_CAPABILITY_TYPE",
        "CAPABILITY_REF_REQUIRED",
        "UNSUPPORTED_POLICY_TARGET",
        "VALUES_WITHOUT_SCHEMA",
        "STATELESS_PERSISTENT_CONFLICT",
        "POLICY_REF_UNRESOLVED",
        "POLICY_REF_CYCLE",
        # a schema of ours that is none cannot happen: the schema is checked below
        "SCHEMA_ERROR",
    }
    of_contracts = {
        code
        for code, (category, _) in REGISTRY.items()
        if category not in (Category.RUNTIME_DRIFT, Category.INCONCLUSIVE)
    }
    assert of_contracts == (rowed | alone) - {""}


def test_the_schema_is_one() -> None:
    from jsonschema import Draft202012Validator

    from kubectl_pacto.engine.schema import CONTRACT_SCHEMA

    Draft202012Validator.check_schema(CONTRACT_SCHEMA)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("oci://registry.example/a/b", ("registry.example", "a/b", "", "")),
        ("registry.example:5000/a:1.0", ("registry.example:5000", "a", "1.0", "")),
        ("oci://r.example/a:1.0@sha256:" + "0" * 64, ("r.example", "a", "1.0", "sha256:" + "0" * 64)),
        ("oci://r.example/team%2Fa", ("r.example", "team/a", "", "")),
        ("localhost/a@sha512:" + "f" * 128, ("localhost", "a", "", "sha512:" + "f" * 128)),
    ],
)
def test_a_reference_is_taken_apart(text: str, parts: tuple[str, ...]) -> None:
    ref = parse_oci_ref(text)
    assert ref is not None
    assert (ref.registry, ref.repository, ref.tag, ref.digest) == parts
    assert parse_oci_ref(str(ref)) == ref


@pytest.mark.parametrize(
    "text",
    [
        "",
        "oci://",
        "oci://db",
        "r.example/",
        "r.example/a:",
        "r.example/a@sha256:0",
        "r.example/a b",
        "/a",
        "r.example//a",
    ],
)
def test_what_is_no_reference(text: str) -> None:
    assert parse_oci_ref(text) is None


@pytest.mark.parametrize(
    "path", ["//evil.example", "http://evil.example/", "/%2f/evil", "/a#b", "a", "", "/\\evil"]
)
def test_a_path_that_leads_elsewhere(path: str) -> None:
    assert not is_plain_path(path)


@pytest.mark.parametrize("path", ["/", "/healthz", "/a//b", "/a?b=http://c", "/a%2Fb"])
def test_a_plain_path(path: str) -> None:
    assert is_plain_path(path)


def claims(*states: tuple[str, int]) -> tuple[Claim, ...]:
    return tuple(Claim(f"c{n}", "url", status, "x", weight) for n, (status, weight) in enumerate(states))


@pytest.mark.parametrize(
    ("states", "score", "earned", "total"),
    [
        ([("done", 3), ("not-done", 1)], 75, 3, 4),
        ([("done", 3), ("deferred", 100)], 100, 3, 3),
        ([("partial", 5), ("done", 5)], 80, 8, 10),
        ([("partial", 1)], 100, 1, 1),
        ([("deferred", 5)], 0, 0, 0),
        ([("done", 0)], 0, 0, 0),
        ([("done", 1), ("not-done", 7)], 13, 1, 8),
    ],
)
def test_a_readiness_score(states: list[tuple[str, int]], score: int, earned: int, total: int) -> None:
    found = score_readiness(Readiness("2026-12-31", claims(*states)), date(2026, 12, 31))
    assert (found.score, found.earned, found.total, found.expired) == (score, earned, total, False)
    assert found.passing == (score >= 100)
    assert found.days_remaining == 0


def test_an_expired_readiness_scores_nothing() -> None:
    found = score_readiness(Readiness("2026-12-31", claims(("done", 1)), min_score=0), date(2027, 1, 1))
    assert (found.score, found.passing, found.expired, found.days_remaining) == (0, False, True, -1)
