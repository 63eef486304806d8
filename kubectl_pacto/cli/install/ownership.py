# SPDX-License-Identifier: MIT
"""Whose objects these are: nothing of a Helm release, or of another operator, is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubectl_pacto.cli.errors import AnotherOwns, HelmOwns
from kubectl_pacto.cli.install.objects import path_of, title_of
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound

Raw = Mapping[str, Any]
MANAGER: Final = "kubectl-pacto"


def read_current(client: Client, objects: Iterable[Raw]) -> dict[str, dict[str, Any]]:
    """What of these objects exists now, by its path. Raises ApiError."""
    found = {}
    for raw in objects:
        path = path_of(raw)
        try:
            found[path] = client.get(path)
        except ApiNotFound:
            continue
    return found


def require_ours(current: Iterable[Raw], *, take_ownership: bool = False) -> None:
    """Raises HelmOwns, or AnotherOwns for a CRD, unless all that exists may be changed."""
    for raw in current:
        metadata = raw["metadata"]
        release = (metadata.get("annotations") or {}).get("meta.helm.sh/release-name")
        if release or (metadata.get("labels") or {}).get("app.kubernetes.io/managed-by") == "Helm":
            namespace = (metadata.get("annotations") or {}).get("meta.helm.sh/release-namespace", "")
            raise HelmOwns(object=title_of(raw), release=release or "?", namespace=namespace or "?")
        others = managers(raw)
        if raw["kind"] == "CustomResourceDefinition" and MANAGER not in others and not take_ownership:
            raise AnotherOwns(object=title_of(raw), manager=", ".join(others) or "somebody else")


def managers(raw: Raw) -> Sequence[str]:
    """Who has written an object, its status aside."""
    entries = raw["metadata"].get("managedFields") or []
    return sorted({str(one.get("manager")) for one in entries if not one.get("subresource")})


def is_ours(raw: Raw) -> bool:
    """Whether this plugin made an object."""
    return MANAGER in managers(raw)
