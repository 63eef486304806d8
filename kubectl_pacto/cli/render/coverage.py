# SPDX-License-Identifier: MIT
"""`coverage` as data and as tables: one row per node, or one per pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_pacto.cli.render.columns import Column, age
from kubectl_pacto.collect.fleet_nodes import NodeRow
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.node import Listener, Peer
from kubectl_pacto.observe.coverage import Coverage, Level

Raw = Mapping[str, Any]
LEVELS: Final = (Level.COMPLETE, Level.PARTIAL, Level.FAILED, Level.STALE)


def node_item(row: NodeRow, levels: Mapping[Level, int] | None) -> dict[str, Any]:
    """A node as JSON has it; `podLevels` is null where pods may not be listed."""
    return {
        "node": row.name,
        "state": row.state.value,
        "reason": row.reason,
        "message": row.message,
        "heartbeatAgeSeconds": None if row.heartbeat_age is None else int(row.heartbeat_age),
        "heartbeatBoundSeconds": int(row.bound),
        "droppedEvents": row.dropped,
        "unattributedEvents": row.unattributed,
        "foreignEvents": row.foreign,
        "podViews": row.pods,
        "podLevels": None
        if levels is None
        else {level.name.lower(): levels.get(level, 0) for level in LEVELS},
        "kernelRelease": row.kernel,
        "mapper": row.mapper,
        "agentVersion": row.version,
        "clockAheadSeconds": int(row.skew),
    }


def pod_item(one: Coverage, at: float) -> dict[str, Any]:
    """A pod as JSON has it."""
    view = one.view
    baseline = view.baseline_at if view else None
    return {
        "namespace": one.pod.namespace,
        "pod": one.pod.name,
        "node": one.pod.node,
        "level": one.level.name.title(),
        "reasons": list(one.reasons),
        "baselineAt": None if baseline is None else format_instant(baseline),
        "baselineAgeSeconds": None if baseline is None else int(max(0.0, at - baseline)),
        "listeners": [_listener(item) for item in view.listeners] if view else [],
        "peers": [_peer(item) for item in view.peers] if view else [],
    }


def _listener(item: Listener) -> dict[str, Any]:
    raw: dict[str, Any] = {"address": item.address, "port": item.port}
    return raw if item.v6only is None else {**raw, "v6only": item.v6only}


def _peer(item: Peer) -> dict[str, Any]:
    return {
        "address": item.address,
        "port": item.port,
        "succeeded": item.succeeded,
        "failed": item.failed,
        "open": item.open,
        "lastSuccess": None if item.last_success is None else format_instant(item.last_success),
        "lastFailure": None if item.last_failure is None else format_instant(item.last_failure),
        "failureReason": item.failure_reason.value,
    }


def _heartbeat(row: Raw) -> str:
    if row["heartbeatAgeSeconds"] is None:
        return "-"
    return f"{age(row['heartbeatAgeSeconds'])}/{age(row['heartbeatBoundSeconds'])}"


def _level(name: str) -> Any:
    return lambda row: "-" if row["podLevels"] is None else row["podLevels"][name]


def _sockets(items: Sequence[Raw]) -> str:
    return ",".join(_socket(item) for item in items) or "-"


def _socket(item: Raw) -> str:
    host = f"[{item['address']}]" if ":" in item["address"] else item["address"]
    return f"{host}:{item['port']}"


def _peers(items: Sequence[Raw]) -> str:
    return ",".join(f"{_socket(item)}={_outcome(item)}" for item in items) or "-"


def _outcome(item: Raw) -> str:
    """What came of the last attempt."""
    success, failure = item["lastSuccess"] or "", item["lastFailure"] or ""
    if item["open"] or (success and success >= failure):
        return "ok"
    return item["failureReason"] or "failed" if failure else "tried"


NODE_COLUMNS: Final = (
    Column("NODE", lambda row: row["node"]),
    Column("STATE", lambda row: row["state"]),
    Column("REASON", lambda row: row["reason"] or "-"),
    Column("HEARTBEAT", _heartbeat),
    Column("DROPPED", lambda row: row["droppedEvents"]),
    *(Column(name.upper(), _level(name)) for name in ("complete", "partial", "failed", "stale")),
    Column("UNATTRIBUTED", lambda row: row["unattributedEvents"], wide=True),
    Column("FOREIGN", lambda row: row["foreignEvents"], wide=True),
    Column("KERNEL-VERSION", lambda row: row["kernelRelease"] or "-", wide=True),
    Column("MAPPER", lambda row: row["mapper"] or "-", wide=True),
    Column("AGENT", lambda row: row["agentVersion"] or "-", wide=True),
    Column("MESSAGE", lambda row: row["message"] or "-", wide=True),
)
POD_COLUMNS: Final = (
    Column("NAMESPACE", lambda row: row["namespace"]),
    Column("POD", lambda row: row["pod"]),
    Column("NODE", lambda row: row["node"]),
    Column("LEVEL", lambda row: row["level"]),
    Column("REASON", lambda row: ",".join(row["reasons"]) or "-"),
    Column("BASELINE", lambda row: "-" if row["baselineAt"] is None else age(row["baselineAgeSeconds"])),
    Column("LISTENERS", lambda row: len(row["listeners"])),
    Column("PEERS", lambda row: len(row["peers"])),
    Column("LISTENS-ON", lambda row: _sockets(row["listeners"]), wide=True),
    Column("TALKS-TO", lambda row: _peers(row["peers"]), wide=True),
)
