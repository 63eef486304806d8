# SPDX-License-Identifier: MIT
"""The packed index of node objects says what the whole objects say, of every pod and in every verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.collect.live import Live, LiveCluster
from kubectl_pacto.collect.live_kinds import LIVE_KINDS
from kubectl_pacto.collect.live_nodes import NodeRecord
from kubectl_pacto.collect.node_index import index_node, pack, unpack
from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.conformance.check import check
from kubectl_pacto.conformance.source import load_offline
from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.model.decode_net import decode_lease
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.node import NodeInfo, NodeRuntimeObservation, PodView
from kubectl_pacto.model.node_codec import decode_node
from tests.support import builders

Raw = dict[str, Any]
KINDS = {kind.kind: kind for kind in LIVE_KINDS}
# the tables' own kind of trouble: what is missing, null, of another type, out of range, or merely rare
ODD = st.sampled_from([None, "", 0, 1, -1, 70000, True, "x", [], [1], {}, {"a": 1}, 1.5])
TIMES = st.sampled_from(
    [
        "2026-10-18T09:12:44.123Z",
        "2026-10-18T09:12:59.999Z",
        "2026-10-18T09:12:60.000Z",
        "2026-10-18T09:12:44Z",
        "2026-10-18T11:12:44.123456+02:00",
        "2026-02-30T09:12:44.123Z",
        "2026-10-18T09:12:44.1२3Z",
        "2026-10-18T09.12.44.123Z",
        "yesterday, at a quarter",
    ]
)  # fmt: skip
ADDRESSES = st.sampled_from(["10.96.0.1", "::ffff:10.96.0.1", "fe80::1%eth0", "0.0.0.0", "::", "no address"])


def _maybe(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, usual, ODD)


def _mapping(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Raw]:
    return st.fixed_dictionaries({}, optional={name: _maybe(value) for name, value in fields.items()})


PEER = st.fixed_dictionaries(
    {"address": ADDRESSES, "port": st.integers(1, 65535)},
    optional={
        "succeeded": _maybe(st.integers(0, 9)),
        "failed": _maybe(st.integers(0, 9)),
        "aborted": _maybe(st.integers(0, 9)),
        "open": _maybe(st.integers(0, 9)),
        "lastSuccess": _maybe(TIMES),
        "lastFailure": _maybe(TIMES),
        "openSince": _maybe(TIMES),
        "failureReason": _maybe(st.sampled_from(["", "refused", "timeout", "pending", "of tomorrow"])),
    },
)
LISTENER = st.fixed_dictionaries(
    {"address": ADDRESSES, "port": _maybe(st.integers(1, 65535))}, optional={"v6only": _maybe(st.booleans())}
)
POD = st.fixed_dictionaries(
    {"uid": _maybe(st.sampled_from(["a", "b", "c", "d", "e"]))},
    optional={
        "baselineAt": _maybe(TIMES),
        "complete": _maybe(st.booleans()),
        "reasons": _maybe(st.lists(st.sampled_from(["Truncated", "HostNetwork", "of tomorrow"]), max_size=2)),
        "listeners": _maybe(st.lists(LISTENER, max_size=2)),
        "peers": _maybe(st.lists(PEER, max_size=3)),
    },
)


def needed(view: PodView) -> PodView:
    """A view without the counts that no verdict reads."""
    return replace(view, peers=tuple(replace(peer, succeeded=0, failed=0, aborted=0) for peer in view.peers))


def refusal(decode: Callable[[Raw], object], raw: Raw) -> str:
    """Why an object is refused; empty if it is not."""
    try:
        decode(raw)
    except MalformedObject as error:
        return str(error)
    return ""


@given(pods=_maybe(st.lists(POD, max_size=4)))
def test_any_object_is_indexed_as_it_is_decoded_or_refused_as_it_is_refused(pods: Any) -> None:
    raw: Raw = {**builders.node("n1", {"lease": False}, [])[0], "pods": pods}
    raw = json.loads(json.dumps(raw))
    refused = refusal(decode_node, raw)
    assert refusal(index_node, raw) == refused
    if refused:
        return
    whole = decode_node(raw)
    node, views = index_node(raw)
    assert node == replace(whole, pods=(), node=NodeInfo())
    found = {uid: unpack(uid, packed) for uid, packed in views.items()}
    assert found == {pod.uid: needed(pod) for pod in whole.pods}


@given(pod=POD)
def test_the_quick_way_and_the_careful_way_pack_alike(pod: Raw) -> None:
    raw: Raw = {**builders.node("n1", {"lease": False}, [])[0], "pods": [pod]}
    try:
        whole = decode_node(raw)
    except MalformedObject:
        return
    _, views = index_node(raw)
    uid = whole.pods[0].uid
    assert unpack(uid, views[uid]) == unpack(uid, pack(whole.pods[0]))


def live_of(raws: list[Raw]) -> LiveCluster:
    """The cluster that the operator would have of these objects."""
    records: dict[str, NodeRecord] = {}
    leases: Raw = {}
    live = Live(changed=lambda *_: None, trouble=lambda _: "", lease_of=leases.get)
    for raw in raws:
        kind, metadata = raw["kind"], raw["metadata"]
        if kind == "NodeRuntimeObservation":
            node, views = index_node(raw)
            records[node.name] = NodeRecord(node, None, 0.0, views)
        elif kind == "Lease":
            leases[metadata["name"]] = decode_lease(Fields(raw))
        else:
            live.tables[kind].put((metadata.get("namespace", ""), metadata["name"]), KINDS[kind].decode(raw))
    cluster = live.generation().for_one_check()
    cluster.late_nodes.update(records)
    return cluster


SECONDS = st.integers(0, 300).map(str)
CALL = st.tuples(
    st.sampled_from(
        ["10.96.0.1:5432", "10.2.0.1:5432", "[::ffff:10.96.0.2]:5432", "10.96.9.9:80", "192.0.2.1:443"]
    ),
    st.sampled_from(["ok", "fail", "open"]),
    SECONDS,
).map(" ".join)
ONE_POD = st.fixed_dictionaries(
    {},
    optional={
        "node": st.sampled_from(["n1", "n2"]),
        "ready": st.booleans(),
        "listens": st.lists(
            st.sampled_from(["0.0.0.0:8080", "[::]:8080", "127.0.0.1:8080", "0.0.0.0:9"]), max_size=2
        ),
        "peers": st.lists(CALL, max_size=4),
        "started": st.sampled_from([10, 600]),
        "hostNetwork": st.booleans(),
        "containers": st.sampled_from([[], ["istio-proxy"]]),
        "probe": st.sampled_from([{"tcpSocket": {"port": "web"}}, {"exec": {"command": ["true"]}}]),
        "view": st.sampled_from([{}, {"complete": False, "reasons": ["Truncated"]}, "none"]),
    },
)
ROW = st.fixed_dictionaries(
    {
        "contract": st.sampled_from(
            [
                {"interfaces": ["api"]},
                {"interfaces": ["api"], "dependencies": ["db"]},
                {"dependencies": ["db", "cache"], "workload": "service"},
            ]
        ),
        "pods": st.dictionaries(st.sampled_from(["a", "b", "c"]), ONE_POD, min_size=1),
        "providers": st.sampled_from([{}, {"db": {}}, {"db": {}, "cache": {}}]),
    },
    optional={
        "windows": st.sampled_from([{}, {"interface/api": 200}, {"dependency/db": 30}]),
        "nodes": st.dictionaries(
            st.sampled_from(["n1", "n2"]),
            st.fixed_dictionaries(
                {}, optional={"heartbeat": st.sampled_from([5, 200]), "state": st.just("Degraded")}
            ),
        ),
    },
)


@given(row=ROW)
def test_the_operators_compact_cluster_gives_the_evidence_that_whole_objects_give(row: Raw) -> None:
    raws = json.loads(json.dumps(builders.objects(row)))
    objects, options = Objects(), builders.options(row)
    for raw in raws:
        objects.add(raw)
    plain, compact = objects.cluster(), live_of(raws)
    for pacto in plain.pactos:
        loaded = load_offline(pacto)
        expected = check(pacto, plain, loaded, at=builders.AT, options=options)
        found = check(pacto, compact, loaded, at=builders.AT, options=options)
        assert found.evidence == expected.evidence
        assert found == expected


def test_a_view_takes_a_tenth_of_its_objects() -> None:
    peers = [f"10.1.{index}.7:443 ok 5" for index in range(20)]
    view = builders.view("a", {"listens": ["0.0.0.0:8080", "127.0.0.1:9000"], "peers": peers})
    node: NodeRuntimeObservation = decode_node(builders.node("n1", {}, [view or {}])[0])
    _, views = index_node(builders.node("n1", {}, [view or {}])[0])
    assert len(views["uid-a"]) < 1200
    assert len(node.pods[0].peers) == 20
