# SPDX-License-Identifier: MIT
"""The JSON Schema of a contract of version 2.0 (draft 2020-12), as data. Layer 1 of its validation.

Every object is closed, except `metadata`, `extensions` and a configuration's `values`.
"""

from __future__ import annotations

from typing import Any, Final

# `False` would lose the path of the field it forbids in the validator's error
_FORBIDDEN: Final[dict[str, Any]] = {"not": {}}
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_NON_EMPTY: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
_DATE: Final[dict[str, Any]] = {"type": "string", "format": "date"}


def _closed(required: str, /, **properties: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def _enum(words: str) -> dict[str, Any]:
    return {"type": "string", "enum": words.split()}


def _list(items: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **rest}


_CONTACT = _closed(
    "type value",
    type=_enum("email url group oncall chat other"),
    value=_NON_EMPTY,
    purpose=_enum("ownership support escalation oncall notifications"),
)
_OWNER = {
    **_closed(
        "",
        team={"type": "string", "pattern": "^[a-zA-Z0-9._/-]+$"},
        dri={"type": "string", "pattern": "^[a-zA-Z0-9._@/-]+$"},
        contacts=_list(_CONTACT, minItems=1),
    ),
    "minProperties": 1,
}
_SERVICE = _closed(
    "name version",
    name={"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"},
    version=_NON_EMPTY,
    owner=_OWNER,
)
_INTERFACE = _closed(
    "name type ref",
    name=_NON_EMPTY,
    type=_enum("openapi asyncapi grpc"),
    ref=_NON_EMPTY,
    visibility={**_enum("public internal"), "default": "internal"},
)
_ONE_SOURCE = [{"required": ["schema"]}, {"required": ["ref"]}]
_CONFIGURATION = {
    **_closed(
        "name required",
        name=_NON_EMPTY,
        required={"type": "boolean"},
        schema=_NON_EMPTY,
        ref=_NON_EMPTY,
        values={"type": "object"},
    ),
    "oneOf": _ONE_SOURCE,
    "dependentRequired": {"values": ["schema"]},
}
_POLICY = {
    **_closed(
        "name",
        name=_NON_EMPTY,
        schema=_NON_EMPTY,
        ref=_NON_EMPTY,
        target={**_enum("contract"), "default": "contract"},
    ),
    "oneOf": _ONE_SOURCE,
}
_DEPENDENCY = _closed(
    "name ref compatibility required",
    name=_NON_EMPTY,
    ref=_NON_EMPTY,
    compatibility=_NON_EMPTY,
    required={"type": "boolean"},
)
_STATE = {
    **_closed(
        "type persistence dataCriticality",
        type=_enum("stateless stateful hybrid"),
        persistence=_closed(
            "scope durability", scope=_enum("local shared"), durability=_enum("ephemeral persistent")
        ),
        dataCriticality=_enum("low medium high"),
    ),
    "if": {"properties": {"type": {"const": "stateless"}}, "required": ["type"]},
    "then": {
        "properties": {"persistence": {"properties": {"durability": {"const": "ephemeral"}}}},
    },
}
_BINDING = _closed(
    "type interface",
    type=_enum("http"),
    interface=_NON_EMPTY,
    path={"type": "string", "pattern": "^/([^/].*)?$"},
)
_CAPABILITY = {
    **_closed("type", type=_enum("health metrics extension"), ref=_NON_EMPTY, binding=_BINDING),
    "if": {"properties": {"type": {"const": "extension"}}, "required": ["type"]},
    "then": {"required": ["ref"], "properties": {"binding": _FORBIDDEN}},
    "else": {"properties": {"ref": _FORBIDDEN}},
}
_CLAIM = _closed(
    "id type status evidence weight",
    id={"type": "string", "pattern": "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"},
    type=_enum("url document ticket report artifact identifier other"),
    status=_enum("done partial not-done deferred"),
    evidence={"type": "string", "minLength": 1, "maxLength": 2048},
    weight={"type": "integer", "minimum": 0, "maximum": 100},
    category=_enum(
        "architecture testing code-quality observability security documentation infrastructure ci-cd "
        "deployment resilience backup-recovery incident-response compliance other"
    ),
    description=_NON_EMPTY,
)
_READINESS = _closed(
    "expires claims",
    expires=_DATE,
    claims=_list(_CLAIM, minItems=1),
    minScore={"type": "integer", "minimum": 0, "maximum": 100, "default": 100},
    partialCredit={"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
    history=_list(
        _closed("date version author description", date=_DATE, version=_TEXT, author=_TEXT, description=_TEXT)
    ),
)

CONTRACT_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Pacto contract 2.0",
    **_closed(
        "pactoVersion service",
        pactoVersion=_enum("2.0"),
        service=_SERVICE,
        interfaces=_list(_INTERFACE),
        configurations=_list(_CONFIGURATION),
        policies=_list(_POLICY, minItems=1),
        dependencies=_list(_DEPENDENCY),
        state=_STATE,
        workload=_enum("service job scheduled"),
        capabilities=_list(_CAPABILITY),
        readiness=_READINESS,
        metadata={"type": "object"},
        extensions={"type": "object"},
    ),
}
