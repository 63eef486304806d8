# SPDX-License-Identifier: MIT
"""NodeRuntimeObservation to JSON and back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.model.node import (
    Collection,
    CollectionReason,
    FailureReason,
    Listener,
    NodeInfo,
    NodeRuntimeObservation,
    Peer,
    PodReason,
    PodView,
)
from kubectl_pacto.model.node_codec import decode_node, encode_node

T0 = 1_792_314_764.0  # 2026-10-18T09:12:44Z
FULL = NodeRuntimeObservation(
    name="node-a",
    node_name="node-a",
    last_published=T0,
    collection=Collection(
        reason=CollectionReason.EVENTS_DROPPED,
        message="7 events",
        started_at=T0 - 60,
        last_resync=T0 - 5.25,
        connections_since=T0 - 59,
        dropped_events=7,
        unattributed_events=2,
        foreign_events=3,
        api_requests_per_minute=4,
        state=CollectionReason.EVENTS_DROPPED.state,
    ),
    node=NodeInfo("6.8.0", "v2", "b-1", "0.1.0", "iter"),
    pods=(
        PodView(
            uid="6b7f",
            baseline_at=T0 - 10,
            complete=False,
            reasons=(PodReason.EVENTS_DROPPED,),
            listeners=(Listener("0.0.0.0", 8080), Listener("::", 8443, False)),
            peers=(
                Peer(
                    "10.96.0.12",
                    5432,
                    succeeded=12,
                    failed=1,
                    aborted=2,
                    last_success=T0 - 1.5,
                    last_failure=T0 - 3,
                    failure_reason=FailureReason.REFUSED,
                    open=1,
                    open_since=T0 - 1.5,
                ),
            ),
        ),
    ),
)


def test_the_object_carries_the_field_names_of_the_schema() -> None:
    raw = encode_node(FULL)
    assert raw["apiVersion"] == "pacto.trianalab.io/v1alpha1"
    assert raw["metadata"]["labels"]["app.kubernetes.io/name"] == "pacto-node-agent"
    assert raw["lastPublished"] == "2026-10-18T09:12:44Z"
    assert raw["collection"] == {
        "state": "Degraded",
        "reason": "EventsDropped",
        "message": "7 events",
        "startedAt": "2026-10-18T09:11:44Z",
        "lastResync": "2026-10-18T09:12:38.750Z",
        "connectionsSince": "2026-10-18T09:11:45Z",
        "droppedEvents": 7,
        "unattributedEvents": 2,
        "foreignEvents": 3,
        "apiRequestsPerMinute": 4,
    }
    assert raw["pods"][0]["listeners"] == [
        {"address": "0.0.0.0", "port": 8080},
        {"address": "::", "port": 8443, "v6only": False},
    ]
    assert raw["pods"][0]["peers"] == [
        {
            "address": "10.96.0.12",
            "port": 5432,
            "succeeded": 12,
            "failed": 1,
            "aborted": 2,
            "lastSuccess": "2026-10-18T09:12:42.500Z",
            "lastFailure": "2026-10-18T09:12:41.000Z",
            "failureReason": "refused",
            "open": 1,
            "openSince": "2026-10-18T09:12:42.500Z",
        }
    ]


def test_a_node_survives_the_round_trip_through_json() -> None:
    assert decode_node(json.loads(json.dumps(encode_node(FULL)))) == FULL


@given(st.floats(min_value=0, max_value=4e9))
def test_peer_times_keep_their_millisecond(when: float) -> None:
    peer = Peer("10.0.0.1", 80, last_success=when)
    node = NodeRuntimeObservation("n", "n", pods=(PodView("u", peers=(peer,)),))
    back = decode_node(encode_node(node)).pods[0].peers[0].last_success
    assert back is not None
    assert abs(back - when) <= 0.0011


def test_unknown_fields_and_reasons_of_a_newer_agent_are_tolerated() -> None:
    raw = encode_node(FULL)
    raw["future"] = {"x": 1}
    raw["collection"]["reason"] = "Tired"
    raw["pods"][0]["reasons"] = ["Novel"]
    raw["pods"][0]["complete"] = True
    raw["pods"][0]["peers"][0]["failureReason"] = "gremlins"
    node = decode_node(raw)
    assert node.collection.state.value == "Degraded"
    assert not node.pods[0].complete  # a reason, even an unknown one, outweighs the flag
    assert node.pods[0].peers[0].failure_reason is FailureReason.OTHER


def test_two_views_of_one_pod_are_refused_with_both_places() -> None:
    raw = encode_node(FULL)
    raw["pods"] = [*raw["pods"], {**raw["pods"][0], "uid": "other"}, {**raw["pods"][0], "complete": True}]
    with pytest.raises(MalformedObject, match=r"pods\[2\]\.uid: .*6b7f.*pods\[0\]"):
        decode_node(raw)


def _broken(path: list[Any], value: object) -> dict[str, Any]:
    raw = json.loads(json.dumps(encode_node(FULL)))
    at: Any = raw
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return dict(raw)


@pytest.mark.parametrize(
    ("path", "value", "where", "problem"),
    [
        (["pods"], {}, "pods", "must be a list, not a mapping"),
        (["pods", 0, "uid"], None, "pods[0].uid", "is required"),
        (["pods", 0, "listeners", 1, "port"], 0, "pods[0].listeners[1].port", "1 to 65535"),
        (["pods", 0, "listeners", 1, "port"], "80", "pods[0].listeners[1].port", "whole number"),
        (["pods", 0, "peers", 0, "failed"], -1, "pods[0].peers[0].failed", "negative"),
        (["pods", 0, "peers", 0, "open"], True, "pods[0].peers[0].open", "whole number"),
        (["pods", 0, "complete"], "yes", "pods[0].complete", "true or false"),
        (["lastPublished"], "yesterday", "lastPublished", "RFC 3339"),
        (["lastPublished"], 5, "lastPublished", "RFC 3339"),
        (["collection", "state"], "Fine", "collection.state", "'Running', 'Degraded', 'Failed'"),
        (["metadata", "labels"], {"a": 1}, "metadata.labels.a", "quote it"),
        (["metadata"], [], "metadata", "must be a mapping, not a list"),
    ],
)
def test_a_malformed_field_is_named(path: list[Any], value: object, where: str, problem: str) -> None:
    with pytest.raises(MalformedObject) as caught:
        decode_node(_broken(path, value))
    assert caught.value.where == where
    assert problem in str(caught.value)


def test_the_agents_imports_stay_light() -> None:
    script = "import sys, kubectl_pacto.model.node_codec; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"yaml", "click", "jsonschema", "json", "subprocess", "asyncio"} & set(loaded)


@pytest.mark.parametrize("collection", [None, {}, {"state": None}, {"state": ""}])
def test_a_view_that_does_not_say_how_it_was_collected_is_malformed(collection: object) -> None:
    raw = encode_node(FULL)
    raw["collection"] = collection
    with pytest.raises(MalformedObject, match=r"collection\.state"):
        decode_node(raw)


def test_a_pod_without_its_list_of_listeners_is_not_complete() -> None:
    raw = encode_node(FULL)
    for pod in raw["pods"]:
        pod["complete"], pod["reasons"] = True, []
        del pod["listeners"]
    assert [pod.complete for pod in decode_node(raw).pods] == [False] * len(raw["pods"])
