# SPDX-License-Identifier: MIT
"""The byte budget of the published object: what is cut, in what order, and that it is marked. Pure.

The API server refuses objects past 1.5 MiB, so the bound of all bounds is the text's length. The
largest pod gives way first: half of its peers, those tried longest ago and not open, as often as it
takes; listeners only when no pod has peers left to give.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from kubectl_pacto.model.bounds import OBJECT_BYTES
from kubectl_pacto.model.node import NodeRuntimeObservation, Peer, PodReason, PodView
from kubectl_pacto.model.node_codec import encode_node

# what the API server adds to the object's metadata
METADATA_BYTES = 2048


def text_of(raw: dict[str, Any]) -> str:
    """Compact JSON, as it is sent; of an object with pods these come last.

    Pod by pod: the encoder holds every word of what it is given until it is done with it, and for a
    full node these are several times the text.
    """
    if not raw.get("pods"):
        return _compact(raw)
    head = _compact({name: value for name, value in raw.items() if name != "pods"})
    return f'{head[:-1]},"pods":[{",".join(map(_compact, raw["pods"]))}]}}'


def _compact(raw: Any) -> str:
    return json.dumps(raw, separators=(",", ":"))


def encoded(raw: dict[str, Any]) -> bytes:
    """text_of() as bytes."""
    return text_of(raw).encode()


def fit(observation: NodeRuntimeObservation, limit: int = OBJECT_BYTES) -> dict[str, Any]:
    """The object of `observation` within `limit` bytes; pods that were cut are marked Truncated."""
    raw = encode_node(observation)
    excess = len(encoded(raw)) + METADATA_BYTES - limit
    if excess <= 0:
        return raw
    pods = list(observation.pods)
    sizes = [len(encoded(pod)) + 1 for pod in raw["pods"]]
    while excess > 0:
        number = max(
            range(len(pods)), key=lambda at: (bool(pods[at].peers), sizes[at], pods[at].uid), default=-1
        )
        if number < 0 or not (pods[number].peers or pods[number].listeners):
            break
        pods[number] = _halved(pods[number])
        size = len(encoded(_encode_pod(observation, pods[number]))) + 1
        excess -= sizes[number] - size
        sizes[number] = size
    return encode_node(replace(observation, pods=tuple(pods)))


def _encode_pod(observation: NodeRuntimeObservation, pod: PodView) -> dict[str, Any]:
    (raw,) = encode_node(replace(observation, pods=(pod,)))["pods"]
    return dict(raw)


def _halved(pod: PodView) -> PodView:
    reasons = pod.reasons if PodReason.TRUNCATED in pod.reasons else (*pod.reasons, PodReason.TRUNCATED)
    marked = replace(pod, complete=False, reasons=reasons)
    if not pod.peers:
        return replace(marked, listeners=pod.listeners[: len(pod.listeners) // 2])
    kept = sorted(pod.peers, key=_worth, reverse=True)[: len(pod.peers) // 2]
    return replace(marked, peers=tuple(peer for peer in pod.peers if peer in kept))


def _worth(peer: Peer) -> tuple[bool, float]:
    return bool(peer.open), max(peer.last_success or 0.0, peer.last_failure or 0.0)
