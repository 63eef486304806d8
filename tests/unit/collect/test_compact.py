# SPDX-License-Identifier: MIT
"""What is kept of each object: equal parts once, and how many objects one more pod costs."""

from __future__ import annotations

import gc
import json
from types import FunctionType, ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.collect.compact import PackedStatus, Pool, unpacked
from kubectl_pacto.collect.live import Live
from kubectl_pacto.collect.live_kinds import LIVE_KINDS
from kubectl_pacto.collect.node_index import index_node
from tests.support import scale_objects as objects
from tests.support.scale_objects import PODS_OF_ONE, Shape

KINDS = {kind.kind: kind for kind in LIVE_KINDS}
SHAPE = Shape(50, 25, namespaces=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def live() -> Live:
    return Live(changed=lambda *_: None, trouble=lambda _: "", lease_of=lambda _: None)


def decoded(kind: str, raw: dict[str, Any]) -> Any:
    return KINDS[kind].decode(json.loads(objects.encoded(raw)))


def parts(*roots: object) -> int:
    """How many objects hang on these: values of every kind; neither classes nor text keys."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        waiting += gc.get_referents(one)
    return len(seen)


def cost(kind: str, make: Any, few: int = 10, many: int = 50) -> float:
    """How many objects one more of a kind costs."""
    sizes = []
    for count in (few, many):
        table = live().tables[kind]
        for number in range(count):
            raw = make(number)
            table.put((raw["metadata"]["namespace"], raw["metadata"]["name"]), decoded(kind, raw))
        sizes.append(parts(table._items))
    return (sizes[1] - sizes[0]) / (many - few)


def test_one_more_pod_costs_few_objects() -> None:
    def pod(number: int) -> Any:
        return objects.pod(SHAPE, number // PODS_OF_ONE, number % PODS_OF_ONE)

    raw = json.loads(objects.encoded(pod(1)))
    assert parts(raw) > 150
    assert cost("Pod", pod) <= 20


def test_one_more_of_the_rest_costs_few_objects() -> None:
    assert cost("Pacto", lambda number: objects.pacto(SHAPE, number)) <= 25
    assert cost("ReplicaSet", lambda number: objects.workloads(SHAPE, number)[1]) <= 40
    assert cost("Service", lambda number: objects.service(SHAPE, number)) <= 30
    assert cost("EndpointSlice", lambda number: objects.endpoint_slice(SHAPE, number)) <= 35


def test_a_view_of_twenty_peers_is_one_object() -> None:
    raw = objects.node("n1", [objects.view(SHAPE, number, 0) for number in range(10)])
    node, views = index_node(json.loads(objects.encoded(raw)))
    assert parts(views) == 1 + 10
    assert sum(len(view) for view in views.values()) < 10 * 1200
    assert node.pods == ()


def test_a_status_that_is_written_again_and_again_is_no_news_to_a_generation() -> None:
    tables, raw = live(), objects.pacto(SHAPE, 1)
    key, table = (raw["metadata"]["namespace"], "s1"), tables.tables["Pacto"]
    table.put(key, decoded("Pacto", raw))
    first = tables.generation(1e9)
    raw["status"] = {"contractStatus": "Compliant", "lastReconciledAt": "2026-10-18T09:12:44Z"}
    table.put(key, decoded("Pacto", raw))
    assert tables.generation(1e9) is first
    raw["status"]["contract"] = {"serviceName": "s1", "version": "1.0.0"}
    table.put(key, decoded("Pacto", raw))
    second = tables.generation(1e9)
    assert second is not first
    assert second.pactos[0].published is not None
    assert tables.pactos.get(key).pacto.status == raw["status"]  # type: ignore[union-attr]


def test_a_generation_takes_over_what_did_not_change() -> None:
    tables = live()
    for number in range(3):
        for kind, raw in (
            ("Pod", objects.pod(SHAPE, number, 0)),
            ("Service", objects.service(SHAPE, number)),
        ):
            key = raw["metadata"]["namespace"], raw["metadata"]["name"]
            tables.tables[kind].put(key, decoded(kind, raw))
    first = tables.generation(1e9)
    tables.tables["Pod"].drop((objects.namespace_of(SHAPE, 1), "s1-0-0"))
    tables.cost = 0.0
    second = tables.generation(1e9)
    assert [pod.name for pod in second.pods] == ["s0-0-0", "s2-0-0"]
    assert second.pod(objects.namespace_of(SHAPE, 1), "s1-0-0") is None
    assert first.pod(objects.namespace_of(SHAPE, 1), "s1-0-0") is not None
    assert second._services is first._services
    assert second._pods is not first._pods


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_a_packed_status_is_the_status(status: dict[str, Any]) -> None:
    packed = PackedStatus(status)
    assert packed.whole() == status
    assert dict(packed) == status
    assert packed == PackedStatus(dict(reversed(status.items())))
    assert packed != {**status, "another": 1}


def test_a_pacto_of_the_table_is_read_whole() -> None:
    raw = objects.pacto(SHAPE, 1)
    raw["status"] = {"contractStatus": "Compliant"}
    known = decoded("Pacto", raw)
    assert isinstance(known.pacto.status, PackedStatus)
    assert unpacked(known.pacto).status == {"contractStatus": "Compliant"}
    assert type(unpacked(known.pacto).status) is dict


def test_a_pool_is_bounded_and_shares() -> None:
    pool = Pool(most=100)
    for number in range(1000):
        pool.one(("value", number))
        assert len(pool) <= 200
    first, second = ("a", *"b"), ("a", *"b")
    assert first is not second
    assert pool.one(first) is pool.one(second)
    for number in range(100):
        pool.one(("another", number))
    assert pool.one(second) is first
