# SPDX-License-Identifier: MIT
"""Words to write structural schemas with: each makes one property, its description first.

Used by the CRDs' sources alone. A list is atomic unless it says its keys: every status has one writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_pacto.model.group import GROUP, VERSION

Schema = dict[str, Any]
NAME_LENGTH: Final = 253


def text(description: str, **more: Any) -> Schema:
    """A string."""
    return {"description": description, "type": "string", **more}


def one_of(description: str, values: Iterable[str]) -> Schema:
    """A string of a closed set."""
    return text(description, enum=list(values))


def name(description: str) -> Schema:
    """The name of an object, never empty."""
    return text(description, minLength=1, maxLength=NAME_LENGTH)


def moment(description: str) -> Schema:
    """An RFC 3339 time."""
    return text(description, format="date-time")


def number(description: str, *, least: int | None = 0, **more: Any) -> Schema:
    """A whole number, by default not negative."""
    bound = {} if least is None else {"minimum": least}
    return {"description": description, "type": "integer", "format": "int32", **bound, **more}


def flag(description: str) -> Schema:
    """True or false."""
    return {"description": description, "type": "boolean"}


def port(description: str) -> Schema:
    """A port by number or by name."""
    return {
        "description": description,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }


def mapping(description: str, values: Schema, **more: Any) -> Schema:
    """Names to values of one schema."""
    return {"description": description, "type": "object", "additionalProperties": values, **more}


def listing(description: str, items: Schema, *, keys: tuple[str, ...] = (), **more: Any) -> Schema:
    """A list; with `keys` a map keyed by these fields, else replaced as a whole."""
    kind: Schema = (
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
        if keys
        else {"x-kubernetes-list-type": "atomic"}
    )
    return {"description": description, "type": "array", "items": items, **kind, **more}


def record(
    description: str, properties: Mapping[str, Schema], required: Iterable[str] = (), **more: Any
) -> Schema:
    """A mapping with these fields and no other."""
    needed = sorted(required)
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        **({"required": needed} if needed else {}),
        **more,
    }


def whole(description: str, properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """The schema of a kind: its own fields after those that every object has."""
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return record(description, {**head, **properties}, required)


def column(title: str, path: str, *, type_: str = "string", priority: int = 0) -> Schema:
    """A column of `kubectl get`; one of priority 1 shows with -o wide."""
    found: Schema = {"name": title, "type": type_, "jsonPath": path}
    return {**found, "priority": priority} if priority else found


def crd(names: Schema, schema: Schema, columns: list[Schema], *, status: bool = True) -> Schema:
    """The CustomResourceDefinition of a namespaced kind."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if status else {}),
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names['plural']}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "pacto"},
        },
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
