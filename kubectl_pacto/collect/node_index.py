# SPDX-License-Identifier: MIT
"""What a node object says of each of its pods, packed: a fleet has a million peers.

A view is kept as a few hundred bytes under its pod's UID, and unpacked for the check that asks. Of a peer
only what a verdict reads is kept: its connection counts are not. Objects of the usual shape are packed
straight from their JSON; any other goes through `decode_node`, which says what is wrong with it.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from kubectl_pacto.model.instant import parse_instant
from kubectl_pacto.model.node import (
    AGENT_LABELS,
    FailureReason,
    Listener,
    NodeInfo,
    NodeRuntimeObservation,
    Peer,
    PodReason,
    PodView,
)
from kubectl_pacto.model.node_codec import decode_node

Packed = tuple[NodeRuntimeObservation, Mapping[str, bytes]]
UNPACKED: Final = 256
_LABELS: Final = dict(AGENT_LABELS)
_NOBODY: Final[Mapping[str, bytes]] = MappingProxyType({})
_REASONS: Final = {reason.value: reason for reason in PodReason}
_FAILURES: Final = {reason.value: reason for reason in FailureReason}
_MILLISECONDS: Final = {f"{number:03d}": number / 1000 for number in range(1000)}
_NO_INFO: Final = NodeInfo()


class _UnusualError(Exception):
    """Something that the careful decoder should look at."""


def index_node(raw: Mapping[str, Any]) -> Packed:
    """A node object without its pods, and the packed view of each pod by UID. Raises MalformedObject."""
    try:
        pods = _list(raw.get("pods"))
        views = {pod["uid"]: _pack_pod(pod) for pod in pods}
        if len(views) != len(pods):
            raise _UnusualError
        node = decode_node({**raw, "pods": None})
    except (_UnusualError, KeyError, TypeError, AttributeError, ValueError):
        node = decode_node(raw)
        views = {pod.uid: pack(pod) for pod in node.pods}
    labels = _LABELS if node.labels == _LABELS else node.labels
    return replace(node, labels=labels, node=_NO_INFO, pods=()), views or _NOBODY


def pack(view: PodView) -> bytes:
    """A view as bytes; for this process alone."""
    return marshal.dumps(
        (
            view.complete,
            view.baseline_at,
            tuple(reason.value for reason in view.reasons),
            tuple((item.address, item.port, item.v6only) for item in view.listeners),
            tuple(
                (
                    peer.address,
                    peer.port,
                    peer.last_success,
                    peer.last_failure,
                    peer.failure_reason.value,
                    peer.open,
                    peer.open_since,
                )
                for peer in view.peers
            ),
        )
    )


@lru_cache(maxsize=UNPACKED)
def unpack(uid: str, packed: bytes) -> PodView:
    """The view in these bytes; a check asks for the same one several times."""
    complete, baseline, reasons, listeners, peers = marshal.loads(packed)  # noqa: S302 -- packed by `pack`
    return PodView(
        uid,
        baseline,
        complete,
        tuple(_REASONS[reason] for reason in reasons),
        tuple(Listener(*item) for item in listeners),
        tuple(
            Peer(
                address,
                port,
                last_success=success,
                last_failure=failure,
                failure_reason=_FAILURES[reason],
                open=count,
                open_since=since,
            )
            for address, port, success, failure, reason, count, since in peers
        ),
    )


def _pack_pod(pod: dict[str, Any]) -> bytes:
    """A pod's entry, packed from its JSON as `pack` packs what `decode_node` makes of it."""
    listeners, reasons = pod.get("listeners"), _list(pod.get("reasons"))
    complete, baseline = pod.get("complete", False), pod.get("baselineAt")
    if type(pod["uid"]) is not str or not pod["uid"] or type(complete) is not bool:
        raise _UnusualError
    if (listeners is not None and type(listeners) is not list) or reasons:
        raise _UnusualError
    return marshal.dumps(
        (
            complete and listeners is not None,
            None if baseline is None else _instant(baseline),
            (),
            tuple([_listener(item) for item in listeners or ()]),
            tuple([_peer(item) for item in _list(pod.get("peers"))]),
        )
    )


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if type(value) is not list:
        raise _UnusualError
    return value


def _listener(item: dict[str, Any]) -> tuple[str, int, bool | None]:
    address, port, v6only = item["address"], item["port"], item.get("v6only")
    if type(address) is not str or not address or type(port) is not int or not 0 < port < 65536:
        raise _UnusualError
    if v6only is not None and type(v6only) is not bool:
        raise _UnusualError
    return address, port, v6only


def _peer(item: dict[str, Any]) -> tuple[Any, ...]:
    get = item.get
    address, port, opened, reason = item["address"], item["port"], get("open", 0), get("failureReason", "")
    if type(address) is not str or not address or type(port) is not int or not 0 < port < 65536:
        raise _UnusualError
    # written out: a loop over the counts of a million peers takes a second
    succeeded, failed, aborted = get("succeeded", 0), get("failed", 0), get("aborted", 0)
    if type(opened) is not int or opened < 0 or type(succeeded) is not int or succeeded < 0:
        raise _UnusualError
    if type(failed) is not int or failed < 0 or type(aborted) is not int or aborted < 0:
        raise _UnusualError
    if type(reason) is not str:
        raise _UnusualError
    success, failure, since = get("lastSuccess"), get("lastFailure"), get("openSince")
    return (
        address,
        port,
        None if success is None else _instant(success),
        None if failure is None else _instant(failure),
        reason if reason in _FAILURES else FailureReason.OTHER.value,
        opened,
        None if since is None else _instant(since),
    )


def _instant(text: str) -> float:
    """`parse_instant`, quick for the form that agents write: whole milliseconds, UTC."""
    if len(text) == 24 and text[23] == "Z" and text[19] == ".":
        part = _MILLISECONDS.get(text[20:23])
        if part is not None:
            return _second(text[:19]) + part
    return parse_instant(text)


# the seconds of late are a few hundred, however many peers there are
@lru_cache(maxsize=1024)
def _second(text: str) -> float:
    return parse_instant(f"{text}Z")
