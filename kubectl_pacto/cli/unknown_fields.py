# SPDX-License-Identifier: MIT
"""Fields of a Pacto that its CRD does not have: a slip in writing, or a Pacto of a newer version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files
from typing import Any

import yaml

from kubectl_pacto.model.group import API_VERSION

Schema = Mapping[str, Any]


def unknown_fields(pactos: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One sentence for each such field of `spec`, which an API server refuses or drops.

    And one for each Pacto of another version: its fields are read as if they were of this one.
    """
    spec: Schema | None = None
    for raw in pactos:
        spec = spec or _spec_schema()
        metadata = raw.get("metadata") or {}
        name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
        if raw.get("apiVersion") != API_VERSION:
            yield f"Pacto {name} is of {raw.get('apiVersion')} and read as {API_VERSION}"
        for path, known in _walk(raw.get("spec"), spec, "spec"):
            near = get_close_matches(path.rpartition(".")[2], known, n=1)
            meant = f": is {near[0]} meant?" if near else ""
            yield f"Pacto {name} has the unknown field {path}, which is not read{meant}"


def _spec_schema() -> Schema:
    text = (files("kubectl_pacto.controller.manifests") / "crds" / "pactos.yaml").read_text(encoding="utf-8")
    crd: Schema = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 -- both are safe
    found: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def _walk(value: object, schema: Schema, path: str) -> Iterator[tuple[str, list[str]]]:
    """Paths of keys that no schema has, each with the keys that may stand there."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _walk(item, schema.get("items") or {}, f"{path}[{place}]")
        return
    known = schema.get("properties")
    if not isinstance(value, Mapping) or not known or schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    for key, item in value.items():
        if key in known:
            yield from _walk(item, known[key], f"{path}.{key}")
        else:
            yield f"{path}.{key}", list(known)
