# SPDX-License-Identifier: MIT
"""What `status`, `findings` and `coverage` read of a cluster: Pactos, operator, node agents, nodes.

Raw JSON and no model: a person waits for it. What may not be read is said, and the rest still shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote

from kubectl_pacto.collect.fleet_errors import NoSuchPacto, NotInstalled
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiForbidden, ApiNotFound
from kubectl_pacto.kube.lists import list_all, with_query
from kubectl_pacto.kube.paths import PACTO_API, leases, namespaced, node_observations

Raw = Mapping[str, Any]
T = TypeVar("T")
CRD: Final = "CRD pactos.pacto.trianalab.io"
NONE: Final[list[dict[str, Any]]] = []
APPS: Final = "/apis/apps/v1"
OPERATOR_LABEL: Final = "app.kubernetes.io/name=pacto-operator"
AGENT_LABEL: Final = "app.kubernetes.io/name=pacto-node-agent"
OPERATOR_NAMESPACE: Final = "pacto-operator-system"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which Pactos: of a namespace (empty: of all), by label, by name."""

    namespace: str = ""
    selector: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """The operator's Deployment or the agents' DaemonSet, as far as it matters here."""

    namespace: str
    name: str
    desired: int
    ready: int
    updated: int
    image: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether all that should run does, in its newest form."""
        return self.ready >= self.desired and self.updated >= self.desired


@dataclass(slots=True)
class Reading:
    """Reads that may be refused: what could not be read, and why, by what it was."""

    refused: dict[str, str] = field(default_factory=dict)

    def optional(self, what: str, read: Callable[[], T], otherwise: T) -> T:
        """What a read gives; `otherwise` where it is not allowed, or the kind is not served."""
        try:
            return read()
        except ApiForbidden as error:
            self.refused[what] = str(error.facts["problem"])
        except ApiNotFound:
            pass
        return otherwise


def clean(raw: Raw) -> dict[str, Any]:
    """An object without what no reader wants."""
    metadata = {key: value for key, value in raw.get("metadata", {}).items() if key != "managedFields"}
    return {**raw, "metadata": metadata}


def list_raw(client: Client, path: str) -> list[dict[str, Any]]:
    """All objects of a list. Raises ApiError."""
    return list_all(client, path, clean).items


def read_pactos(client: Client, scope: Scope) -> list[dict[str, Any]]:
    """The Pactos of a scope, by namespace and name. Raises NotInstalled, NoSuchPacto, ApiError."""
    base = namespaced(PACTO_API, scope.namespace, "pactos") if scope.namespace else f"{PACTO_API}/pactos"
    if scope.name:
        try:
            return [clean(client.get(f"{base}/{quote(scope.name, safe='')}"))]
        except ApiNotFound:
            _require_kind(client, base)
            raise NoSuchPacto(name=scope.name, namespace=scope.namespace) from None
    try:
        found = list_raw(client, with_query(base, labelSelector=scope.selector))
    except ApiNotFound:
        raise NotInstalled(kind=CRD) from None
    return sorted(found, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"]))


def _require_kind(client: Client, path: str) -> None:
    try:
        client.get(with_query(path, limit=1))
    except ApiNotFound:
        raise NotInstalled(kind=CRD) from None


def read_operator(client: Client, reading: Reading) -> Component | None:
    """The operator's Deployment, wherever it is; None if there is none or it may not be seen."""
    everywhere = with_query(f"{APPS}/deployments", labelSelector=OPERATOR_LABEL)
    try:
        found = list_raw(client, everywhere)
    except ApiForbidden:
        path = with_query(namespaced(APPS, OPERATOR_NAMESPACE, "deployments"), labelSelector=OPERATOR_LABEL)
        found = reading.optional("the operator's Deployment", lambda: list_raw(client, path), NONE)
    return _deployment(found[0]) if found else None


def _deployment(raw: Raw) -> Component:
    status, spec = raw.get("status") or {}, raw.get("spec") or {}
    return Component(
        raw["metadata"]["namespace"],
        raw["metadata"]["name"],
        desired=int(spec.get("replicas", 1)),
        ready=int(status.get("readyReplicas") or 0),
        updated=int(status.get("updatedReplicas") or 0),
        image=image_of(raw),
    )


def read_agents(client: Client, namespace: str, reading: Reading) -> Component | None:
    """The node agents' DaemonSet; None if there is none or it may not be seen."""
    path = with_query(namespaced(APPS, namespace, "daemonsets"), labelSelector=AGENT_LABEL)
    found = reading.optional("the node agents' DaemonSet", lambda: list_raw(client, path), NONE)
    if not found:
        return None
    status = found[0].get("status") or {}
    return Component(
        namespace,
        found[0]["metadata"]["name"],
        desired=int(status.get("desiredNumberScheduled") or 0),
        # an agent has no probe: ready is that it was started, available that it has stayed
        ready=int(status.get("numberAvailable") or 0),
        updated=int(status.get("updatedNumberScheduled") or 0),
        image=image_of(found[0]),
    )


def image_of(raw: Raw) -> str:
    """The first container's image of a workload."""
    containers = raw.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    return str(containers[0].get("image") or "")


@dataclass(frozen=True, slots=True)
class NodeObjects:
    """Nodes, and what their agents publish."""

    nodes: list[dict[str, Any]]
    observations: list[dict[str, Any]]
    leases: list[dict[str, Any]]


def read_nodes(client: Client, agent_namespace: str, reading: Reading) -> NodeObjects:
    """Nodes, node observations and heartbeats."""
    selector = AGENT_LABEL
    return NodeObjects(
        reading.optional("the nodes", lambda: list_raw(client, "/api/v1/nodes"), []),
        reading.optional(
            "node observations",
            lambda: list_raw(client, with_query(node_observations(agent_namespace), labelSelector=selector)),
            [],
        ),
        reading.optional("the node agents' Leases", lambda: list_raw(client, leases(agent_namespace)), []),
    )
