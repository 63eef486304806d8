# SPDX-License-Identifier: MIT
"""The byte budget of the published object: what is cut, in what order, and that it is marked. Pure.

The API server refuses objects past 1.5 MiB, so the bound of all bounds is the text's length. The
largest pod gives way first: half of its peers, those tried longest ago and not open, as often as it
takes; listeners only when no pod has peers left to give.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kubectl_pacto.model.bounds import OBJECT_BYTES
from kubectl_pacto.model.node import NodeRuntimeObservation, Peer, PodReason, PodView
from kubectl_pacto.model.node_codec import encode_node

# what the API server adds to the object's metadata
METADATA_BYTES = 2048


class PodText(str):
    """One pod as JSON, where an object would have its tree: a full node's trees take several MiB."""

    __slots__ = ()


class _Giving(NamedTuple):
    """What a pod has that it could give."""

    uid: str
    peers: int
    listeners: int


def text_of(raw: dict[str, Any]) -> str:
    """Compact JSON, as it is sent; of an object with pods these come last.

    Pod by pod: the encoder holds every word of what it is given until it is done with it, and for a
    full node these are several times the text.
    """
    if not raw.get("pods"):
        return _compact(raw)
    head = _compact({name: value for name, value in raw.items() if name != "pods"})
    pods = (pod if isinstance(pod, PodText) else _compact(pod) for pod in raw["pods"])
    return f'{head[:-1]},"pods":[{",".join(pods)}]}}'


def _compact(raw: Any) -> str:
    return json.dumps(raw, separators=(",", ":"))


def encoded(raw: dict[str, Any]) -> bytes:
    """text_of() as bytes."""
    return text_of(raw).encode()


def fit(
    observation: NodeRuntimeObservation, pods: Sequence[PodView], limit: int = OBJECT_BYTES
) -> dict[str, Any]:
    """The object of a view whose pods are these within `limit` bytes, each pod a PodText.

    Those that are cut are marked Truncated. `pods` may make each pod anew when it is asked for.
    """
    texts, giving = [], []
    for pod in pods:
        texts.append(_pod_text(observation, pod))
        giving.append(_Giving(pod.uid, len(pod.peers), len(pod.listeners)))
    raw = encode_node(replace(observation, pods=()))
    excess = len(_compact(raw)) + sum(len(text) + 1 for text in texts) + METADATA_BYTES - limit
    cut: dict[int, PodView] = {}
    while excess > 0:
        number = max(
            range(len(texts)),
            key=lambda at: (bool(giving[at].peers), len(texts[at]), giving[at].uid),
            default=-1,
        )
        if number < 0 or not (giving[number].peers or giving[number].listeners):
            break
        pod = cut[number] = _halved(cut.get(number) or pods[number])
        giving[number] = _Giving(pod.uid, len(pod.peers), len(pod.listeners))
        text = _pod_text(observation, pod)
        excess -= len(texts[number]) - len(text)
        texts[number] = text
    raw["pods"] = texts
    return raw


def unpacked(raw: dict[str, Any]) -> dict[str, Any]:
    """The same object with each pod as its tree."""
    pods = [json.loads(pod) if isinstance(pod, PodText) else pod for pod in raw["pods"]]
    return {**raw, "pods": pods}


def _pod_text(observation: NodeRuntimeObservation, pod: PodView) -> PodText:
    return PodText(_compact(_encode_pod(observation, pod)))


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
