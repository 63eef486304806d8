# SPDX-License-Identifier: MIT
"""The NodeRuntimeObservation CRD, derived from the model's dataclasses so that both cannot differ.

`make gen` writes it to manifests/crds. Readers tolerate reasons of newer agents, so only the
collection state, which verdicts branch on, is a closed set here.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields
from enum import StrEnum
from typing import Any, Final

from kubectl_pacto.controller.schema_words import column, crd
from kubectl_pacto.model import bounds, node

FIELD_NAMES: Final = {"boot_id": "bootID"}
CLOSED: Final = frozenset({node.CollectionState})
TOP: Final = ("node_name", "last_published", "collection", "node", "pods")

MAX_ITEMS: Final = {
    "pods": bounds.PODS_PER_NODE,
    "listeners": bounds.LISTENERS_PER_POD,
    "peers": bounds.PEERS_PER_POD,
    "reasons": len(node.PodReason) + 10,
}

DESCRIPTIONS: Final = {
    "NodeRuntimeObservation.node_name": "The node; the object counts only under its name.",
    "NodeRuntimeObservation.last_published": "When it was written; its heartbeat where it has no Lease.",
    "NodeRuntimeObservation.collection": "How well the agent collects.",
    "NodeRuntimeObservation.node": "Facts about the node and its agent, for people.",
    "NodeRuntimeObservation.pods": "The node's pods, in the order of their UIDs.",
    "Collection.reason": "Why the state is not Running.",
    "Collection.message": "The reason in words, with what to do.",
    "Collection.started_at": "When the agent started.",
    "Collection.last_resync": "When the last baseline that was applied began.",
    "Collection.connections_since": "Since when no connection event was lost.",
    "Collection.dropped_events": "Events lost since the agent started.",
    "Collection.unattributed_events": "Events since the agent started that named no pod of this node.",
    "Collection.foreign_events": "Events in a pod's network namespace that another cgroup made.",
    "Collection.api_requests_per_minute": "Requests to the API server in the minute before it was written.",
    "Collection.state": "Running, Degraded (readable, but nothing is complete) or Failed (nothing to read).",
    "NodeInfo.kernel_release": "The kernel's release.",
    "NodeInfo.cgroup_mode": "v1, hybrid or v2.",
    "NodeInfo.boot_id": "The kernel's id of this boot.",
    "NodeInfo.agent_version": "The version of the agent.",
    "NodeInfo.mapper": "How sockets are matched to pods: proc or iter.",
    "PodView.uid": "The pod's UID as its cgroup names it; a static pod's is its config hash.",
    "PodView.baseline_at": "The last baseline that covered the pod's own network namespace.",
    "PodView.complete": "Own namespace, mapped, nothing dropped since the baseline, no bound hit.",
    "PodView.reasons": "Why not complete.",
    "PodView.listeners": "Listening TCP sockets of the pod's own network namespace.",
    "PodView.peers": "Outbound TCP connections, per peer address and port.",
    "Listener.address": "The local address; 0.0.0.0 and :: are wildcards.",
    "Listener.port": "The local port.",
    "Listener.v6only": "Whether an IPv6 socket refuses IPv4; absent where unknown.",
    "Peer.address": "The peer's address as the socket has it.",
    "Peer.port": "The peer's port.",
    "Peer.succeeded": "Connections established.",
    "Peer.failed": "Connections that failed before they were established.",
    "Peer.aborted": "Attempts that the caller gave up at once; no evidence about the peer.",
    "Peer.last_success": "When a connection was last established.",
    "Peer.last_failure": "When a connection last failed.",
    "Peer.failure_reason": "Of the last failure: refused, timeout, unreachable, reset, other or pending.",
    "Peer.open": "Outbound connections that the last resync found established.",
    "Peer.open_since": "Since when one was found open without a break.",
}  # fmt: skip


def camel(name: str) -> str:
    """The JSON spelling of a field's name."""
    first, *rest = name.split("_")
    return FIELD_NAMES.get(name, first + "".join(part.capitalize() for part in rest))


def node_crd() -> dict[str, Any]:
    """The CustomResourceDefinition."""
    top = object_schema(node.NodeRuntimeObservation, TOP)
    top["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **top["properties"],
    }
    labels = " and ".join(f"{key}={value}" for key, value in node.AGENT_LABELS.items())
    top["description"] = (
        "What the node agent of one node sees of its pods' TCP sockets. It counts only under its node's name,"
        f" in the agents' namespace ({node.AGENT_NAMESPACE}, unless the operator or `evaluate` is told of"
        f" another), with the labels {labels}."
    )
    columns = [
        column("State", ".collection.state"),
        column("Reason", ".collection.reason"),
        column("Dropped", ".collection.droppedEvents", type_="integer"),
        column("Kernel", ".node.kernelRelease", priority=1),
        column("Mapper", ".node.mapper", priority=1),
        column("API/min", ".collection.apiRequestsPerMinute", type_="integer", priority=1),
        column("Published", ".lastPublished", type_="date"),
        column("Age", ".metadata.creationTimestamp", type_="date"),
    ]
    names = {
        "kind": "NodeRuntimeObservation",
        "listKind": "NodeRuntimeObservationList",
        "plural": "noderuntimeobservations",
        "singular": "noderuntimeobservation",
        "shortNames": ["nro"],
        "categories": ["pacto"],
    }
    return crd(names, top, columns, status=False)


def object_schema(model: type, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """The structural schema of a dataclass; its fields without a default are required."""
    hints = typing.get_type_hints(model)
    chosen = [field for field in fields(model) if not only or field.name in only]
    properties = {}
    for field in chosen:
        schema = _type_schema(hints[field.name], field.name)
        properties[camel(field.name)] = {
            "description": DESCRIPTIONS[f"{model.__name__}.{field.name}"],
            **schema,
        }
    required = sorted(camel(field.name) for field in chosen if _is_required(hints[field.name], field.name))
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _is_required(hint: Any, name: str) -> bool:
    return name in ("uid", "address", "port", "node_name", "state", "collection") and not _optional(hint)


def _optional(hint: Any) -> bool:
    return isinstance(hint, types.UnionType) and type(None) in hint.__args__


def _type_schema(hint: Any, name: str) -> dict[str, Any]:
    if _optional(hint):
        (hint,) = [part for part in hint.__args__ if part is not type(None)]
    if typing.get_origin(hint) is tuple:
        items = _type_schema(hint.__args__[0], name)
        return {
            "type": "array",
            "maxItems": MAX_ITEMS[name],
            "x-kubernetes-list-type": "atomic",
            "items": items,
        }
    if hint is bool:
        return {"type": "boolean"}
    if hint is float:
        return {"type": "string", "format": "date-time"}
    if hint is int:
        return {"type": "integer", "format": "int64", "minimum": 0, **_port_range(name)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", **({"enum": [member.value for member in hint]} if hint in CLOSED else {})}
    return {"type": "string"} if hint is str else object_schema(hint)


def _port_range(name: str) -> dict[str, int]:
    return {"minimum": 1, "maximum": 65535} if name == "port" else {}
