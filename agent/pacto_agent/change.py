# SPDX-License-Identifier: MIT
"""Whether a verdict could read a new view differently from the one last written. Pure.

Counters alone are no change: they ride along with the next one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from math import isnan, nan

from kubectl_pacto.model.node import NodeRuntimeObservation, Peer, PodView


@dataclass(frozen=True, slots=True)
class Told:
    """What verdicts read of one view, packed: it is held until the next change, and a full view is MiBs.

    `times`: when each peer last succeeded and failed, in POSIX seconds, NaN for never.
    """

    head: tuple[object, ...]
    pods: tuple[bytes, ...]
    times: array[float]


def told_of(observation: NodeRuntimeObservation, pods: Iterable[PodView]) -> Told:
    """What verdicts read of a view whose pods are these."""
    texts, times = [], array("d")
    for pod in pods:
        texts.append(_text(pod))
        times.extend(chain.from_iterable(map(_times, pod.peers)))
    return Told(_head(observation), tuple(texts), times)


def changed(before: Told | None, after: Told, interval: float) -> bool:
    """Compare with what was last written; `interval` is the publish interval in seconds."""
    if before is None or before.head != after.head or before.pods != after.pods:
        return True
    return any(_moved(old, new, interval) for old, new in zip(before.times, after.times, strict=True))


def _head(observation: NodeRuntimeObservation) -> tuple[object, ...]:
    collection = observation.collection
    return (
        observation.node,
        collection.state,
        collection.reason,
        collection.started_at,
        collection.connections_since,
    )


def _text(pod: PodView) -> bytes:
    """All that must be equal, written out: two pods have the same text only when they are the same."""
    listeners = [(one.address, one.port, one.v6only) for one in pod.listeners]
    peers = [(one.address, one.port, one.failure_reason.value, bool(one.open)) for one in pod.peers]
    reasons = [reason.value for reason in pod.reasons]
    return repr((pod.uid, pod.complete, reasons, pod.baseline_at is None, listeners, peers)).encode()


def _times(peer: Peer) -> tuple[float, float]:
    return (
        nan if peer.last_success is None else peer.last_success,
        nan if peer.last_failure is None else peer.last_failure,
    )


def _moved(old: float, new: float, interval: float) -> bool:
    if isnan(old) or isnan(new):
        return isnan(old) != isnan(new)
    return new - old >= interval
