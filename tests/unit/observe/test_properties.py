# SPDX-License-Identifier: MIT
"""What must hold of every cluster, not only of those someone thought of."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_pacto.conformance.check import Checked
from tests.support.builders import objects, run
from tests.support.tables import rows

SECONDS = st.sampled_from([1, 30, 89, 90, 91, 130, 400, 700])
ADDRESSES = st.sampled_from(
    ["10.96.0.1:5432", "10.2.0.1:5432", "10.96.0.2:5432", "10.2.0.2:5432", "9.9.9.9:1"]
)
LISTENS = st.sampled_from(["0.0.0.0:8080", "[::]:8080 v6only", "127.0.0.1:8080", "[::]:8080", "0.0.0.0:9"])


@st.composite
def peers(draw: st.DrawFn) -> str:
    happened = draw(st.sets(st.sampled_from(["ok", "fail", "open"]), min_size=1))
    return " ".join([draw(ADDRESSES), *(f"{word} {draw(SECONDS)}" for word in sorted(happened))])


POD = st.fixed_dictionaries(
    {
        "listens": st.lists(LISTENS, max_size=2),
        "peers": st.lists(peers(), max_size=3, unique_by=lambda text: text.split()[0]),
        "node": st.sampled_from(["n1", "n2"]),
        "started": st.sampled_from([50, 150, 600]),
    },
    optional={
        "ready": st.just(False),
        "phase": st.just("Pending"),
        "view": st.sampled_from(["none", {"reasons": ["Truncated"]}]),
        "containers": st.just(["istio-proxy"]),
        "endpoint": st.booleans(),
        "as": st.sampled_from([{"ready": False}, {"pod": None}]),
        "probe": st.just({"httpGet": {"port": 8080}}),
    },
)
NODE = st.fixed_dictionaries(
    {"heartbeat": st.sampled_from([5, 60, 91]), "connectionsSince": st.sampled_from([60, 3600])},
    optional={
        "state": st.just("Failed"),
        "object": st.just(False),
        "renewed": st.booleans(),
    },
)
PROVIDER = st.fixed_dictionaries(
    {"version": st.sampled_from(["1.2.0", "2.0.0"])},
    optional={
        "ready": st.just(False),
        "created": st.just(40),
        "started": st.just(40),
        "contract": st.just(False),
    },
)
ROW = st.fixed_dictionaries(
    {
        "contract": st.just({"interfaces": ["api"], "dependencies": ["db"]}),
        "pods": st.dictionaries(st.sampled_from(["a", "b", "c"]), POD, max_size=3),
        "nodes": st.dictionaries(st.sampled_from(["n1", "n2"]), NODE, max_size=2),
        "providers": st.fixed_dictionaries({"db": PROVIDER, "audit": PROVIDER}),
        "windows": st.dictionaries(
            st.sampled_from(["interface/api", "dependency/db"]), st.sampled_from([60, 120, 180, 500])
        ),
    }
)
MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def codes(checked: Checked, severity: str) -> set[tuple[str, str]]:
    """Findings of one severity by code and subject."""
    found = checked.status.get("findings", ())
    return {(item["code"], item["subject"]) for item in found if item["severity"] == severity}


def of_the_kernel(checked: Checked) -> set[tuple[str, str]]:
    """Error findings that the kernel decided."""
    return {
        (item["code"], item["subject"])
        for item in checked.status.get("findings", ())
        if item["severity"] == "error" and "ebpf" in item["evidenceRefs"][0]["collector"]
    }


@MANY
@given(ROW, st.integers())
def test_a_verdict_does_not_depend_on_the_order_of_objects(row: dict[str, Any], seed: int) -> None:
    raws = objects(row)
    shuffled = deepcopy(raws)
    random.Random(seed).shuffle(shuffled)
    for raw in shuffled:
        for holder, name in ((raw, "endpoints"), (raw, "pods"), (raw.get("status", {}), "podIPs")):
            if isinstance(holder.get(name), list):
                random.Random(seed).shuffle(holder[name])
    assert run(row, shuffled).status == run(row, raws).status


@MANY
@given(ROW)
def test_evaluating_twice_gives_the_same(row: dict[str, Any]) -> None:
    assert run(row) == run(row)


@MANY
@given(ROW, st.sampled_from(["n1", "n2"]))
def test_a_silent_node_never_creates_an_error(row: dict[str, Any], node: str) -> None:
    before = run(row)
    silent = deepcopy(row)
    silent["nodes"].setdefault(node, {})["object"] = False
    after = run(silent)
    # what the API alone decides may show, once the kernel no longer qualifies it
    assert of_the_kernel(after) <= of_the_kernel(before)
    assert not codes(after, "error") - codes(before, "error") - of_the_api(row)


@MANY
@given(ROW, st.sampled_from(["n1", "n2"]))
def test_a_view_going_stale_never_creates_an_error(row: dict[str, Any], node: str) -> None:
    before = run(row)
    stale = deepcopy(row)
    stale["nodes"].setdefault(node, {})["heartbeat"] = 900
    after = run(stale)
    assert of_the_kernel(after) <= of_the_kernel(before)
    assert not codes(after, "error") - codes(before, "error") - of_the_api(row)


def of_the_api(row: dict[str, Any]) -> set[tuple[str, str]]:
    """The errors there are without any kernel evidence."""
    return codes(run({**row, "options": {"kernel": False}}), "error")


@MANY
@given(ROW)
def test_the_kernel_never_overrides_a_kubernetes_negative(row: dict[str, Any]) -> None:
    alone, merged = run({**row, "options": {"kernel": False}}), run(row)
    assert alone.evidence is not None
    assert merged.evidence is not None
    for item in alone.evidence.observations:
        if item.value is not None and False in item.value.values():
            other = merged.evidence.find(item.kind, item.subject)
            assert other is not None
            assert other.value is None or False in other.value.values()


@MANY
@given(ROW)
def test_a_first_look_never_finds_an_absence(row: dict[str, Any]) -> None:
    checked = run({**row, "windows": {}})
    absences = {"INTERFACE_ABSENT", "DEPENDENCY_UNREACHABLE"}
    assert not absences & {code for code, _ in codes(checked, "error")}


def test_the_tables_cover_every_answer_of_every_collector() -> None:
    seen = {
        expectation
        for table in ("interface", "dependency")
        for row in rows(table)
        for key, expectation in row["expect"].items()
        if "/" in key
    }
    for answer in ("present", "absent", "insufficient", "failed", "stale"):
        assert f"{answer} by k8s-observer+ebpf" in seen
    for answer in ("reachable", "unreachable", "insufficient", "failed", "stale"):
        assert f"{answer} by k8s-observer+ebpf" in seen
    for answer in ("present", "absent", "reachable", "unreachable", "insufficient", "failed", "unsupported"):
        assert f"{answer} by k8s-observer" in seen
