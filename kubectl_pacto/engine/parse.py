# SPDX-License-Identifier: MIT
"""A contract's text to a Contract, through layer 1 of its validation.

Later layers assume what this one proved: every field has its type and its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kubectl_pacto.engine.schema import CONTRACT_SCHEMA
from kubectl_pacto.jsonschemas import leaves, validator
from kubectl_pacto.model.contract import (
    Binding,
    Capability,
    Claim,
    Configuration,
    Contact,
    Contract,
    Dependency,
    Interface,
    InterfaceType,
    Owner,
    Policy,
    Readiness,
    Revision,
    State,
    Visibility,
)
from kubectl_pacto.model.finding import Issue
from kubectl_pacto.yamltext import Document, Path, YamlError, load_contract

SUPPORTED_VERSION = "2.0"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed contract with its document, or the issues that kept it from being one."""

    contract: Contract | None
    document: Document
    issues: tuple[Issue, ...] = ()


@cache
def _validator() -> Any:
    return validator(CONTRACT_SCHEMA)


def parse_text(text: str) -> Document | Issue:
    """The decoded document of a contract's text; never raises: what is no YAML is an issue."""
    try:
        return load_contract(text)
    except YamlError as error:
        return Issue("YAML_PARSE_ERROR", "", str(error))


def parse_contract(text: str) -> Parsed:
    """Parse a contract; never raises: whatever is wrong with it is an issue that says where."""
    document = parse_text(text)
    if isinstance(document, Issue):
        return Parsed(None, Document(), (document,))
    return parse_document(document)


def parse_document(document: Document) -> Parsed:
    """Parse a contract from its decoded document."""
    data = document.data
    if not isinstance(data, dict):
        issue = Issue("YAML_PARSE_ERROR", "", "the contract must be a mapping with pactoVersion and service")
        return Parsed(None, document, (issue,))
    version = data.get("pactoVersion")
    if version != SUPPORTED_VERSION or not isinstance(version, str):
        what = "is required" if version is None else f"is {version!r}"
        problem = f"pactoVersion {what}: this version reads contracts of version 2.0, as a quoted string"
        issue = Issue("UNSUPPORTED_PACTO_VERSION", "pactoVersion", _at(document, ("pactoVersion",), problem))
        return Parsed(None, document, (issue,))
    issues = tuple(_schema_issues(document))
    return Parsed(None if issues else build_contract(data), document, issues)


def _schema_issues(document: Document) -> list[Issue]:
    found = []
    for error in _validator().iter_errors(document.data):
        for leaf in leaves(error):
            path: Path = tuple(leaf.absolute_path)
            message = _at(document, path, explain_leaf(leaf))
            found.append(Issue("SCHEMA_VIOLATION", ".".join(map(str, path)), message))
    return sorted(set(found), key=lambda issue: (issue.path, issue.message))


def explain_leaf(error: Any) -> str:
    """What a schema violation means, in words for the author."""
    if error.validator == "additionalProperties":
        known = ", ".join(sorted(error.schema.get("properties", {})))
        extra = sorted(set(map(str, error.instance)) - set(error.schema.get("properties", {})))
        return f"unknown field {', '.join(map(repr, extra))}; this object takes {known}"
    if error.validator == "oneOf":
        return "must have exactly one of schema and ref"
    if error.validator == "not":
        return "this field does not belong to this type"
    return str(error.message)


def _at(document: Document, path: Path, message: str) -> str:
    place = document.place(path)
    return f"{message} ({place})" if place else message


def build_contract(data: Mapping[str, Any]) -> Contract:
    """The contract in a document that layer 1 found nothing wrong with."""
    service = data["service"]
    return Contract(
        service=service["name"],
        version=service["version"],
        owner=_owner(service.get("owner") or {}),
        interfaces=tuple(_interface(item) for item in data.get("interfaces", ())),
        configurations=tuple(_configuration(item) for item in data.get("configurations", ())),
        policies=tuple(
            Policy(item["name"], item.get("schema", ""), item.get("ref", ""), item.get("target", "contract"))
            for item in data.get("policies", ())
        ),
        dependencies=tuple(
            Dependency(item["name"], item["ref"], item["compatibility"], item["required"])
            for item in data.get("dependencies", ())
        ),
        capabilities=tuple(_capability(item) for item in data.get("capabilities", ())),
        state=_state(data.get("state")),
        workload=data.get("workload", ""),
        readiness=_readiness(data.get("readiness")),
        metadata=data.get("metadata", {}),
    )


def _owner(raw: Mapping[str, Any]) -> Owner:
    contacts = tuple(
        Contact(item["type"], item["value"], item.get("purpose", "")) for item in raw.get("contacts", ())
    )
    return Owner(raw.get("team", ""), raw.get("dri", ""), contacts)


def _interface(raw: Mapping[str, Any]) -> Interface:
    visibility = Visibility(raw["visibility"]) if "visibility" in raw else None
    return Interface(raw["name"], InterfaceType(raw["type"]), raw["ref"], visibility)


def _configuration(raw: Mapping[str, Any]) -> Configuration:
    return Configuration(
        raw["name"], raw["required"], raw.get("schema", ""), raw.get("ref", ""), raw.get("values")
    )


def _capability(raw: Mapping[str, Any]) -> Capability:
    binding = raw.get("binding")
    bound = Binding(binding["type"], binding["interface"], binding.get("path", "")) if binding else None
    return Capability(raw["type"], raw.get("ref", ""), bound)


def _state(raw: Mapping[str, Any] | None) -> State | None:
    if raw is None:
        return None
    persistence = raw["persistence"]
    return State(raw["type"], persistence["scope"], persistence["durability"], raw["dataCriticality"])


def _readiness(raw: Mapping[str, Any] | None) -> Readiness | None:
    if raw is None:
        return None
    return Readiness(
        expires=raw["expires"],
        claims=tuple(
            Claim(
                item["id"],
                item["type"],
                item["status"],
                item["evidence"],
                item["weight"],
                item.get("category", ""),
                item.get("description", ""),
            )
            for item in raw["claims"]
        ),
        min_score=raw.get("minScore", 100),
        partial_credit=float(raw.get("partialCredit", 0.5)),
        history=tuple(
            Revision(item["date"], item["version"], item["author"], item["description"])
            for item in raw.get("history", ())
        ),
    )
