# SPDX-License-Identifier: MIT
"""What was installed: a ConfigMap beside the operator, as Helm keeps its releases.

Holds the values, so that an upgrade keeps them, and the objects, so that what is no longer part of a
release is removed. A namespace that was there before is never deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.cli.install.objects import path_of
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound

Raw = Mapping[str, Any]
NAME: Final = "kubectl-pacto-release"


@dataclass(frozen=True, slots=True)
class Record:
    """One release: `objects` by kind, namespace and name; `found` are paths that were there before."""

    version: str
    values: Mapping[str, Any] = field(default_factory=dict)
    objects: Sequence[Raw] = ()
    found: frozenset[str] = frozenset()

    def encode(self, namespace: str) -> dict[str, Any]:
        """The ConfigMap."""
        content = {
            "version": self.version,
            "values": self.values,
            "objects": list(self.objects),
            "found": sorted(self.found),
        }
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "namespace": namespace,
                "labels": {
                    "app.kubernetes.io/part-of": "pacto",
                    "app.kubernetes.io/managed-by": "kubectl-pacto",
                },
            },
            "data": {"release": json.dumps(content, sort_keys=True)},
        }


def identity(raw: Raw) -> dict[str, Any]:
    """What tells an object from all others."""
    names = {key: raw["metadata"][key] for key in ("namespace", "name") if raw["metadata"].get(key)}
    return {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "metadata": names}


def read_record(client: Client, namespace: str) -> Record | None:
    """The record of a namespace; None without one. Raises ApiError."""
    path = path_of(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": NAME}}
    )
    try:
        raw = client.get(path)
        content = json.loads(raw["data"]["release"])
        return Record(content["version"], content["values"], content["objects"], frozenset(content["found"]))
    except (ApiNotFound, KeyError, ValueError):
        return None
