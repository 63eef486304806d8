# SPDX-License-Identifier: MIT
"""The objects of a release, by the values of the chart; and where the API serves each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from kubectl_pacto.errors import UnreadableInput, UsageError

Raw = Mapping[str, Any]
_PLURALS: Final = {
    "NetworkPolicy": "networkpolicies",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "Ingress": "ingresses",
}


def release_objects(values: Raw, namespace: str) -> list[dict[str, Any]]:
    """All objects of a release in the order in which they are created. Raises UsageError."""
    from kubectl_pacto.controller.manifests import operator_objects

    return operator_objects.release_objects(values, namespace=namespace)


def path_of(raw: Raw) -> str:
    """Where the API serves this object."""
    version, metadata = str(raw["apiVersion"]), raw["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = _PLURALS.get(raw["kind"], f"{raw['kind'].lower()}s")
    namespace = metadata.get("namespace")
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{base}{inside}/{plural}/{quote(metadata['name'], safe='')}"


def title_of(raw: Raw) -> str:
    """An object as kubectl names it: kind.group/name."""
    group = str(raw["apiVersion"]).rpartition("/")[0]
    kind = str(raw["kind"]).lower()
    return f"{kind}.{group}/{raw['metadata']['name']}" if group else f"{kind}/{raw['metadata']['name']}"


def read_values(files: Iterable[str], settings: Iterable[str], texts: Iterable[str] = ()) -> dict[str, Any]:
    """Values of files, the later over the earlier, then `a.b=c` settings, then those that are text.

    Raises UsageError.
    """
    from kubectl_pacto.cli.install.settings import parse_settings
    from kubectl_pacto.collect.documents import read_text
    from kubectl_pacto.yamltext import YamlError, load_all

    values: dict[str, Any] = {}
    for file in files:
        try:
            document = next(load_all(read_text(file), strict=True), None)
        except YamlError as error:
            raise UnreadableInput(file=file, problem=str(error)) from None
        if not isinstance(document, dict | None):
            raise UsageError(f"{file}: values must be a mapping, as in nodeAgent: {{enabled: true}}")
        values = merge(values, document or {})
    for given, as_text in ((settings, False), (texts, True)):
        for setting in given:
            for one in parse_settings(setting, as_text=as_text):
                values = merge(values, one)
    return values


def merge(below: Raw, above: Raw) -> dict[str, Any]:
    """Mappings merged into each other; anything else of `above` replaces, null too, as with Helm.

    A null stays: what it does is decided where values are laid over the defaults.
    """
    made = dict(below)
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = merge(made[key], value)
        else:
            made[key] = value
    return made
