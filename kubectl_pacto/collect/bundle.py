# SPDX-License-Identifier: MIT
"""The objects of a cluster that a verdict rests on, so that `evaluate` can repeat it anywhere.

Never a Secret, and a ConfigMap only where a Pacto binds it. Whatever no check reads is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from kubectl_pacto.collect.fleet import AGENT_LABEL, NONE, Reading, Scope, clean, list_raw, read_pactos
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.lists import with_query
from kubectl_pacto.kube.paths import leases, namespaced, node_observations
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node_codec import KIND as NODE_KIND

Raw = Mapping[str, Any]
Raws = list[dict[str, Any]]
# API, plural, kind: read in every namespace, for a dependency may be in any
KINDS: Final = (
    ("/api/v1", "services", "Service"),
    ("/apis/discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
    ("/api/v1", "pods", "Pod"),
    ("/apis/apps/v1", "deployments", "Deployment"),
    ("/apis/apps/v1", "statefulsets", "StatefulSet"),
    ("/apis/apps/v1", "replicasets", "ReplicaSet"),
    ("/apis/batch/v1", "jobs", "Job"),
    ("/apis/batch/v1", "cronjobs", "CronJob"),
    ("/apis/networking.k8s.io/v1", "ingresses", "Ingress"),
    ("/apis/gateway.networking.k8s.io/v1", "httproutes", "HTTPRoute"),
    ("/apis/monitoring.coreos.com/v1", "servicemonitors", "ServiceMonitor"),
    ("/apis/monitoring.coreos.com/v1", "podmonitors", "PodMonitor"),
    ("/api/v1", "namespaces", "Namespace"),
)
# annotations that may hold what was in a manifest, credentials of careless ones included
_DROPPED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def read_bundle(client: Client, agent_namespace: str, reading: Reading) -> Iterator[dict[str, Any]]:
    """All objects, each with its kind, and what was not read as one more, so that nothing of it counts as
    absent; what may not be read is in `reading`, too. Raises ApiError.
    """
    unread: list[dict[str, str]] = [{"kind": "Secret", "reason": "never part of a bundle"}]

    def optional(what: str, kind: str, read: Callable[[], list[dict[str, Any]]], **names: str) -> Raws:
        found = reading.optional(what, read, NONE)
        if what in reading.refused:
            unread.append({"kind": kind, **names, "reason": reading.refused[what]})
        return found

    pactos = read_pactos(client, Scope())
    yield from (_named(raw, API_VERSION, "Pacto") for raw in pactos)
    for api, plural, kind in KINDS:
        path, version = f"{api}/{plural}", api.removeprefix("/apis/").removeprefix("/api/")
        found = optional(plural, kind, partial(list_raw, client, path))
        yield from (_named(raw, version, kind) for raw in found)
    for namespace, name in _bound_config_maps(pactos):
        path = namespaced("/api/v1", namespace, "configmaps", name)
        what, one = f"configmap {namespace}/{name}", partial(_one, client, path)
        for raw in optional(what, "ConfigMap", one, namespace=namespace, name=name):
            yield _named(raw, "v1", "ConfigMap")
    labelled = with_query(node_observations(agent_namespace), labelSelector=AGENT_LABEL)
    for raw in optional("node observations", NODE_KIND, lambda: list_raw(client, labelled)):
        yield _named(raw, API_VERSION, NODE_KIND)
    for raw in optional("leases", "Lease", lambda: list_raw(client, leases(agent_namespace))):
        yield _named(raw, "coordination.k8s.io/v1", "Lease")
    yield {"apiVersion": API_VERSION, "kind": "Unread", "metadata": {"name": "bundle"}, "unread": unread}


def _bound_config_maps(pactos: Raws) -> list[tuple[str, str]]:
    bound = {
        (raw["metadata"]["namespace"], str(binding.get("name")))
        for raw in pactos
        for binding in ((raw.get("spec") or {}).get("target") or {}).get("configBindings") or ()
        if binding.get("kind") == "ConfigMap"
    }
    return sorted(bound)


def _one(client: Client, path: str) -> list[dict[str, Any]]:
    return [clean(client.get(path))]


def _named(raw: Raw, version: str, kind: str) -> dict[str, Any]:
    """An object of a list says neither version nor kind by itself; annotations that may leak are dropped."""
    metadata = dict(raw["metadata"])
    notes = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _DROPPED}
    metadata.pop("annotations", None)
    made = {"apiVersion": version, "kind": kind, **{key: raw[key] for key in raw if key != "metadata"}}
    made["metadata"] = {**metadata, "annotations": notes} if notes else metadata
    return _without_values(made) if kind in ("Pod", *_WITH_TEMPLATES) else made


_WITH_TEMPLATES: Final = ("Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob")


def _without_values(raw: Any) -> Any:
    """Without the values of environment variables, which no check reads and people keep passwords in."""
    if isinstance(raw, dict):
        return {
            key: [_name_only(one) for one in value]
            if key == "env" and isinstance(value, list)
            else _without_values(value)
            for key, value in raw.items()
        }
    return [_without_values(item) for item in raw] if isinstance(raw, list) else raw


def _name_only(variable: Any) -> Any:
    if not isinstance(variable, dict):
        return variable
    return {key: value for key, value in variable.items() if key != "value"}
