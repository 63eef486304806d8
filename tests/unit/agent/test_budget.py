# SPDX-License-Identifier: MIT
"""The published object stays within its bytes, and says where it was cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kubectl_pacto.model import bounds
from kubectl_pacto.model.node import FailureReason, Listener, NodeRuntimeObservation, Peer, PodReason, PodView
from kubectl_pacto.model.node_codec import decode_node, encode_node
from pacto_agent.budget import METADATA_BYTES, encoded, fit, text_of, unpacked


def whole(view: NodeRuntimeObservation, limit: int = bounds.OBJECT_BYTES) -> dict[str, Any]:
    """What fits, as a tree."""
    return unpacked(fit(view, view.pods, limit))


def peer(number: int, **more: object) -> Peer:
    address = f"fd00:1234:5678:9abc:def0:1234:{number >> 16:x}:{number & 0xFFFF:x}"
    base = Peer(address, 40000, 123456, 1234, 12, 1796026608.123, 1796026609.123, FailureReason.UNREACHABLE)
    return replace(base, **more)  # type: ignore[arg-type]


def pod(number: int, *, listeners: int, peers: int) -> PodView:
    return PodView(
        uid=f"11111111-1111-4111-8111-{number:012d}",
        baseline_at=1796026608.123,
        complete=True,
        listeners=tuple(
            Listener(f"fd00:1234:5678:9abc:def0:1234:5678:{at:x}", 30000 + at, v6only=True)
            for at in range(listeners)
        ),
        peers=tuple(peer(number * 1000 + at) for at in range(peers)),
    )


def node(*pods: PodView) -> NodeRuntimeObservation:
    return NodeRuntimeObservation(name="node-a", node_name="node-a", pods=pods)


def test_a_usual_node_is_left_alone() -> None:
    view = node(*(pod(number, listeners=3, peers=20) for number in range(60)))
    assert unpacked(fit(view, view.pods)) == encode_node(view)
    assert text_of(fit(view, view.pods)) == text_of(encode_node(view))


def test_the_worst_node_at_every_bound_fits() -> None:
    peers = bounds.PEERS_PER_NODE // bounds.PODS_PER_NODE
    view = node(
        *(
            pod(number, listeners=bounds.LISTENERS_PER_POD, peers=peers)
            for number in range(bounds.PODS_PER_NODE)
        )
    )
    assert len(encoded(encode_node(view))) > bounds.OBJECT_BYTES
    raw = whole(view)
    assert len(encoded(raw)) + METADATA_BYTES <= bounds.OBJECT_BYTES
    assert len(raw["pods"]) == bounds.PODS_PER_NODE


def test_a_cut_pod_is_marked_and_no_other_is() -> None:
    view = node(pod(1, listeners=2, peers=100), pod(2, listeners=2, peers=2))
    size = len(encoded(encode_node(view))) + METADATA_BYTES
    large, small = decode_node(whole(view, size - 100)).pods
    assert (large.complete, large.reasons) == (False, (PodReason.TRUNCATED,))
    assert len(large.peers) == 50
    assert (small.complete, small.reasons, len(small.peers)) == (True, (), 2)


def test_peers_tried_last_and_open_ones_are_kept() -> None:
    old_but_open = peer(1, last_success=100.0, last_failure=None, open=2, open_since=50.0)
    others = tuple(peer(at, last_success=1000.0 + at, last_failure=None) for at in range(2, 10))
    view = node(replace(pod(1, listeners=0, peers=0), peers=(old_but_open, *others)))
    size = len(encoded(encode_node(view))) + METADATA_BYTES
    (cut,) = decode_node(whole(view, size - 10)).pods
    assert [one.address for one in cut.peers] == [one.address for one in (old_but_open, *others[-3:])]


def test_listeners_go_only_when_no_pod_has_peers_left() -> None:
    view = node(pod(1, listeners=64, peers=0), pod(2, listeners=0, peers=64))
    (listening, calling) = decode_node(whole(view, METADATA_BYTES + 4500)).pods
    assert calling.peers == ()
    assert 0 < len(listening.listeners) < 64


def test_an_impossible_limit_ends() -> None:
    raw = whole(node(pod(1, listeners=4, peers=4)), 10)
    assert raw["pods"][0]["peers"] == raw["pods"][0]["listeners"] == []


@pytest.mark.parametrize("pods", [(), (PodView("a"),), (PodView("a"), PodView('b"pods":[]'))])
def test_the_text_is_that_of_the_whole_object(pods: tuple[PodView, ...]) -> None:
    raw = encode_node(NodeRuntimeObservation(name='n"pods":[]', node_name="n", pods=pods))
    assert text_of(raw) == json.dumps(raw, separators=(",", ":"))
    after = {**raw, "later": '"pods":[]x', "more": {"pods": []}}
    assert json.loads(text_of(after)) == after


def test_an_object_without_pods_is_told_as_it_is() -> None:
    assert text_of({"kind": "Lease", "spec": {"a": 1}}) == '{"kind":"Lease","spec":{"a":1}}'
