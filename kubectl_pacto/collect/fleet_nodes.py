# SPDX-License-Identifier: MIT
"""One row per node: does its agent report, how fresh, how well. Pure: objects and a clock in, rows out.

Nodes without an agent have a row, too: a row that is not there would be the news that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kubectl_pacto.collect.fleet import NodeObjects
from kubectl_pacto.model.bounds import (
    CLOCK_SKEW_WARNING_SECONDS,
    PUBLISH_INTERVAL_SECONDS,
    STALENESS_INTERVALS,
)
from kubectl_pacto.model.instant import parse_instant

Raw = Mapping[str, Any]
DEFAULT_BOUND = STALENESS_INTERVALS * PUBLISH_INTERVAL_SECONDS


class NodeState(StrEnum):
    """How a node's agent does, the worst first."""

    NO_AGENT = "NoAgent"
    STALE = "Stale"
    FAILED = "Failed"
    DEGRADED = "Degraded"
    RUNNING = "Running"
    UNSUPPORTED = "Unsupported"


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node; ages and bounds in seconds. `skew` is how far its clock is ahead of the API server's."""

    name: str
    state: NodeState
    reason: str = ""
    message: str = ""
    heartbeat_age: float | None = None
    bound: float = DEFAULT_BOUND
    dropped: int = 0
    unattributed: int = 0
    foreign: int = 0
    pods: int = 0
    complete: int = 0
    kernel: str = ""
    mapper: str = ""
    version: str = ""
    skew: float = 0.0


def node_rows(objects: NodeObjects, at: float, staleness: float | None = None) -> list[NodeRow]:
    """The rows of all nodes at a moment, the worst first."""
    observations = {_name(raw): raw for raw in objects.observations if raw.get("nodeName") == _name(raw)}
    heartbeats = {_name(raw): raw.get("spec") or {} for raw in objects.leases}
    nodes = {_name(raw): raw for raw in objects.nodes}
    # without the right to list nodes, those that report are all that can be told of
    names = sorted(nodes) if nodes else sorted(observations)
    rows = [
        _row(name, nodes.get(name, {}), observations.get(name), heartbeats.get(name, {}), at, staleness)
        for name in names
    ]
    order = list(NodeState)
    return sorted(rows, key=lambda row: (order.index(row.state), row.name))


def count_states(rows: Iterable[NodeRow]) -> dict[str, int]:
    """How many nodes are in each state, those that are in none left out."""
    states = [row.state for row in rows]
    return {state.value: states.count(state) for state in NodeState if state in states}


def _name(raw: Raw) -> str:
    return str(raw["metadata"]["name"])


def _row(
    name: str, node: Raw, observation: Raw | None, heartbeat: Raw, at: float, staleness: float | None
) -> NodeRow:
    labels = node.get("metadata", {}).get("labels") or {}
    kernel = str((node.get("status") or {}).get("nodeInfo", {}).get("kernelVersion") or "")
    if observation is None:
        if labels.get("kubernetes.io/os", "linux") != "linux":
            return NodeRow(name, NodeState.UNSUPPORTED, "NotLinux", kernel=kernel)
        return NodeRow(name, NodeState.NO_AGENT, "NoNodeObject", kernel=kernel)
    duration = heartbeat.get("leaseDurationSeconds")
    bound = staleness if staleness is not None else float(duration or DEFAULT_BOUND)
    renewed = _instant(heartbeat.get("renewTime")) or _instant(observation.get("lastPublished"))
    age = None if renewed is None else at - renewed
    collection = observation.get("collection") or {}
    state, reason = NodeState.RUNNING, str(collection.get("reason") or "")
    if age is None or age > bound:
        state, reason = NodeState.STALE, "HeartbeatTooOld"
    elif collection.get("state") in (NodeState.FAILED, NodeState.DEGRADED):
        state = NodeState(collection["state"])
    info, pods = observation.get("node") or {}, observation.get("pods") or []
    return NodeRow(
        name,
        state,
        reason,
        str(collection.get("message") or ""),
        None if age is None else max(0.0, age),
        bound,
        dropped=int(collection.get("droppedEvents") or 0),
        unattributed=int(collection.get("unattributedEvents") or 0),
        foreign=int(collection.get("foreignEvents") or 0),
        pods=len(pods),
        complete=sum(bool(pod.get("complete")) for pod in pods),
        kernel=str(info.get("kernelRelease") or kernel),
        mapper=str(info.get("mapper") or ""),
        version=str(info.get("agentVersion") or ""),
        skew=-age if age is not None and -age > CLOCK_SKEW_WARNING_SECONDS else 0.0,
    )


def _instant(text: object) -> float | None:
    try:
        return parse_instant(text) if isinstance(text, str) else None
    except ValueError:
        return None
