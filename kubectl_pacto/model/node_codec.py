# SPDX-License-Identifier: MIT
"""NodeRuntimeObservation as Kubernetes JSON and back; the only place that knows its field names.

The agent encodes, the operator and `evaluate` decode. Standard library only, because the agent's
memory pays for every import. Readers tolerate unknown fields and unknown reasons of a newer agent.
"""

from __future__ import annotations

from typing import Any, Final

from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.node import (
    Collection,
    CollectionReason,
    CollectionState,
    FailureReason,
    Listener,
    NodeInfo,
    NodeRuntimeObservation,
    Peer,
    PodReason,
    PodView,
)

KIND: Final = "NodeRuntimeObservation"

_POD_REASONS: Final = frozenset(reason.value for reason in PodReason)


def encode_node(observation: NodeRuntimeObservation) -> dict[str, Any]:
    """The Kubernetes object; a value that is None has no field.

    Peer times carry milliseconds (two attempts of one second have an order), as do the others
    where they have a fraction.
    """
    return _without_none(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": observation.name,
                "namespace": observation.namespace,
                "labels": dict(observation.labels),
            },
            "nodeName": observation.node_name,
            "lastPublished": _time(observation.last_published),
            "collection": _encode_collection(observation.collection),
            "node": {
                "kernelRelease": observation.node.kernel_release,
                "cgroupMode": observation.node.cgroup_mode,
                "bootID": observation.node.boot_id,
                "agentVersion": observation.node.agent_version,
                "mapper": observation.node.mapper,
            },
            "pods": [_encode_pod(pod) for pod in observation.pods],
        }
    )


def decode_node(raw: object) -> NodeRuntimeObservation:
    """The observation in a decoded Kubernetes object.

    Raises MalformedObject naming the field, if one has the wrong shape. `apiVersion` and `kind` are
    the caller's to check.
    """
    top = Fields(raw)
    metadata = top.child("metadata")
    info = top.child("node")
    return NodeRuntimeObservation(
        name=metadata.required_text("name"),
        node_name=top.text("nodeName"),
        last_published=top.instant("lastPublished"),
        namespace=metadata.text("namespace"),
        labels=metadata.text_map("labels"),
        collection=_decode_collection(top.child("collection")),
        node=NodeInfo(
            kernel_release=info.text("kernelRelease"),
            cgroup_mode=info.text("cgroupMode"),
            boot_id=info.text("bootID"),
            agent_version=info.text("agentVersion"),
            mapper=info.text("mapper"),
        ),
        pods=_decode_pods(top),
    )


def _decode_pods(top: Fields) -> tuple[PodView, ...]:
    """One view per pod: of two, neither could be trusted over the other."""
    places: dict[str, str] = {}
    pods = []
    for fields in top.children("pods"):
        pod = _decode_pod(fields)
        if pod.uid in places:
            problem = f"{pod.uid} has a view at {places[pod.uid]} already: keep one view of each pod"
            raise fields.fail("uid", problem)
        places[pod.uid] = fields.where
        pods.append(pod)
    return tuple(pods)


def _time(instant: float | None) -> str | None:
    if instant is None:
        return None
    return format_instant(instant, digits=0 if float(instant).is_integer() else 3)


def _precise(instant: float | None) -> str | None:
    return None if instant is None else format_instant(instant, digits=3)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _encode_collection(collection: Collection) -> dict[str, Any]:
    return _without_none(
        {
            "state": collection.state.value,
            "reason": collection.reason.value,
            "message": collection.message,
            "startedAt": _time(collection.started_at),
            "lastResync": _time(collection.last_resync),
            "connectionsSince": _time(collection.connections_since),
            "droppedEvents": collection.dropped_events,
            "unattributedEvents": collection.unattributed_events,
            "foreignEvents": collection.foreign_events,
            "apiRequestsPerMinute": collection.api_requests_per_minute,
        }
    )


def _decode_collection(fields: Fields) -> Collection:
    reasons = {reason.value: reason for reason in CollectionReason}
    fields.required_text("state")  # a view that does not say how it was collected proves nothing
    return Collection(
        state=fields.choice("state", CollectionState, CollectionState.RUNNING),
        # the state alone decides; a reason this version does not know is a newer agent's
        reason=reasons.get(fields.text("reason"), CollectionReason.NONE),
        message=fields.text("message"),
        started_at=fields.instant("startedAt"),
        last_resync=fields.instant("lastResync"),
        connections_since=fields.instant("connectionsSince"),
        dropped_events=fields.count("droppedEvents"),
        unattributed_events=fields.count("unattributedEvents"),
        foreign_events=fields.count("foreignEvents"),
        api_requests_per_minute=fields.count("apiRequestsPerMinute")
        if fields.has("apiRequestsPerMinute")
        else None,
    )


def _encode_pod(pod: PodView) -> dict[str, Any]:
    return _without_none(
        {
            "uid": pod.uid,
            "baselineAt": _time(pod.baseline_at),
            "complete": pod.complete,
            "reasons": [reason.value for reason in pod.reasons],
            "listeners": [_encode_listener(listener) for listener in pod.listeners],
            "peers": [_encode_peer(peer) for peer in pod.peers],
        }
    )


def _decode_pod(fields: Fields) -> PodView:
    reasons = fields.texts("reasons")
    return PodView(
        uid=fields.required_text("uid"),
        baseline_at=fields.instant("baselineAt"),
        # a reason not to be complete outweighs the flag: what contradicts itself proves nothing
        # and a pod without its list of listeners does not say that it has none
        complete=fields.flag("complete") and not reasons and fields.has("listeners"),
        reasons=tuple(PodReason(reason) for reason in reasons if reason in _POD_REASONS),
        listeners=tuple(_decode_listener(listener) for listener in fields.children("listeners")),
        peers=tuple(_decode_peer(peer) for peer in fields.children("peers")),
    )


def _encode_listener(listener: Listener) -> dict[str, Any]:
    return _without_none({"address": listener.address, "port": listener.port, "v6only": listener.v6only})


def _decode_listener(fields: Fields) -> Listener:
    return Listener(
        address=fields.required_text("address"),
        port=fields.port("port"),
        v6only=fields.optional_flag("v6only"),
    )


def _encode_peer(peer: Peer) -> dict[str, Any]:
    return _without_none(
        {
            "address": peer.address,
            "port": peer.port,
            "succeeded": peer.succeeded,
            "failed": peer.failed,
            "aborted": peer.aborted,
            "lastSuccess": _precise(peer.last_success),
            "lastFailure": _precise(peer.last_failure),
            "failureReason": peer.failure_reason.value or None,
            "open": peer.open,
            "openSince": _precise(peer.open_since),
        }
    )


def _decode_peer(fields: Fields) -> Peer:
    known = {reason.value: reason for reason in FailureReason}
    return Peer(
        address=fields.required_text("address"),
        port=fields.port("port"),
        succeeded=fields.count("succeeded"),
        failed=fields.count("failed"),
        aborted=fields.count("aborted"),
        last_success=fields.instant("lastSuccess"),
        last_failure=fields.instant("lastFailure"),
        failure_reason=known.get(fields.text("failureReason"), FailureReason.OTHER),
        open=fields.count("open"),
        open_since=fields.instant("openSince"),
    )
