# SPDX-License-Identifier: MIT
"""Whether a verdict could read a new view differently from the one last written. Pure.

Counters alone are no change: they ride along with the next one.
"""

from __future__ import annotations

from kubectl_pacto.model.node import NodeRuntimeObservation, Peer, PodView


def changed(before: NodeRuntimeObservation | None, after: NodeRuntimeObservation, interval: float) -> bool:
    """Compare with what was last written; `interval` is the publish interval in seconds."""
    if before is None:
        return True
    if _head(before) != _head(after) or len(before.pods) != len(after.pods):
        return True
    return any(_pod_changed(old, new, interval) for old, new in zip(before.pods, after.pods, strict=True))


def _head(observation: NodeRuntimeObservation) -> tuple[object, ...]:
    collection = observation.collection
    return (
        observation.node,
        collection.state,
        collection.reason,
        collection.started_at,
        collection.connections_since,
    )


def _pod_changed(old: PodView, new: PodView, interval: float) -> bool:
    if (old.uid, old.complete, old.reasons, old.baseline_at is None, old.listeners) != (
        new.uid,
        new.complete,
        new.reasons,
        new.baseline_at is None,
        new.listeners,
    ):
        return True
    if len(old.peers) != len(new.peers):
        return True
    return any(_peer_changed(a, b, interval) for a, b in zip(old.peers, new.peers, strict=True))


def _peer_changed(old: Peer, new: Peer, interval: float) -> bool:
    return (
        (old.address, old.port, old.failure_reason, bool(old.open))
        != (new.address, new.port, new.failure_reason, bool(new.open))
        or _moved(old.last_success, new.last_success, interval)
        or _moved(old.last_failure, new.last_failure, interval)
    )


def _moved(old: float | None, new: float | None, interval: float) -> bool:
    if old is None or new is None:
        return old is not new
    return new - old >= interval
