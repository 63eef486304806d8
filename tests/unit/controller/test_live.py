# SPDX-License-Identifier: MIT
"""Generations: shared while nothing changed, rare when they are dear, honest about what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.collect.live import Live
from kubectl_pacto.collect.live_bound import read_bound
from kubectl_pacto.collect.live_kinds import LiveKind
from kubectl_pacto.collect.live_nodes import NodeObjects
from kubectl_pacto.kube.errors import ApiForbidden, ApiNotFound
from kubectl_pacto.kube.reflector import Broken
from kubectl_pacto.model.kube import ConfigMap, Lease, Pod, Secret, Service, Unreadable
from kubectl_pacto.model.pacto import ConfigBinding, Pacto
from kubectl_pacto.model.snapshot import Heartbeat
from tests.support import builders


class World:
    """Tables without reflectors."""

    def __init__(self) -> None:
        self.now = 100.0
        self.trouble: dict[str, str] = {}
        self.heard: list[tuple[str, Any]] = []
        self.live = Live(
            changed=lambda kind, key, before, after: self.heard.append((kind.kind, key)),  # noqa: ARG005
            trouble=lambda kind: self.trouble.get(kind.kind, ""),
            lease_of=lambda _: None,
            clock=lambda: self.now,
        )

    def put(self, kind: str, name: str, item: Any) -> None:
        self.live.tables[kind].put(("ns", name), item)


@pytest.fixture
def world() -> World:
    return World()


def test_a_generation_is_shared_until_something_changes(world: World) -> None:
    world.put("Service", "a", Service("ns", "a"))
    first = world.live.generation(world.now)
    assert isinstance(first.service("ns", "a"), Service)
    world.now += 60
    assert world.live.generation(world.now) is first
    world.put("Service", "b", Service("ns", "b"))
    second = world.live.generation(world.now)
    assert second is not first
    assert isinstance(second.service("ns", "b"), Service)


def test_a_dear_generation_is_kept_for_ten_times_its_cost(world: World) -> None:
    first = world.live.generation()
    world.live.cost = 0.5
    world.put("Service", "a", Service("ns", "a"))
    world.now += 4.9
    assert world.live.generation(world.now) is first
    world.now += 0.2
    assert world.live.generation(world.now) is not first


def test_even_the_dearest_is_not_kept_for_long(world: World) -> None:
    first = world.live.generation()
    world.live.cost = 60
    world.put("Service", "a", Service("ns", "a"))
    world.now += 10
    assert world.live.generation(world.now) is not first


def test_what_cannot_be_listed_is_unreadable_not_absent(world: World) -> None:
    world.trouble["Service"] = "not allowed"
    assert isinstance(world.live.generation().service("ns", "a"), Unreadable)
    world.trouble.clear()
    assert world.live.generation().service("ns", "a") is None


def test_a_broken_object_is_unreadable_and_the_others_are_not(world: World) -> None:
    world.put("Service", "bad", Broken("spec.ports must be a list"))
    world.put("Service", "good", Service("ns", "good"))
    cluster = world.live.generation()
    assert isinstance(cluster.service("ns", "bad"), Unreadable)
    assert isinstance(cluster.service("ns", "good"), Service)


def test_only_what_is_different_is_told(world: World) -> None:
    for _ in range(3):
        world.put("Service", "a", Service("ns", "a"))
    world.live.tables["Service"].replace({("ns", "a"): Service("ns", "a"), ("ns", "b"): Service("ns", "b")})
    world.live.tables["Service"].replace({("ns", "b"): Service("ns", "b")})
    keys = [("ns", "a"), ("ns", "b"), ("ns", "a")]
    assert world.heard == [("Service", key) for key in keys]


def test_five_thousand_short_pods_leave_nothing(world: World) -> None:
    for number in range(5000):
        world.put("Pod", str(number), Pod("ns", str(number)))
        world.live.tables["Pod"].drop(("ns", str(number)))
    assert len(world.live.tables["Pod"]) == 0
    assert world.live.generation().pods == ()


BOUND = Pacto(
    "ns",
    "shop",
    configurations=(ConfigBinding("c", "ConfigMap", "map"), ConfigBinding("s", "Secret", "secret")),
)


class Objects:
    """A client of two objects, with errors on order."""

    def __init__(self) -> None:
        self.error: type[ApiNotFound] | type[ApiForbidden] | None = None
        self.accepts: list[str] = []

    def get(self, path: str, *, accept: str = "") -> dict[str, Any]:
        self.accepts.append(accept)
        if self.error is not None:
            raise self.error(method="GET", path=path, problem="no")
        name = path.rpartition("/")[2]
        return {"metadata": {"name": name, "namespace": "ns"}, "data": {"a": "1"}}


def test_bound_objects_are_read_anew_for_each_check(world: World) -> None:
    cluster, client = world.live.generation().for_one_check(), Objects()
    read_bound(client, cluster, BOUND)  # type: ignore[arg-type]
    assert cluster.config_map("ns", "map") == ConfigMap("ns", "map", {"a": "1"})
    assert cluster.secret("ns", "secret") == Secret("ns", "secret")
    assert "PartialObjectMetadata" in client.accepts[1]
    client.error = ApiForbidden
    read_bound(client, cluster, BOUND)  # type: ignore[arg-type]
    assert isinstance(cluster.config_map("ns", "map"), Unreadable)
    client.error = ApiNotFound
    read_bound(client, cluster, BOUND)  # type: ignore[arg-type]
    assert cluster.config_map("ns", "map") is None
    assert cluster.secret("ns", "secret") is None


class Nodes:
    """A client of node objects that counts, and heartbeats."""

    def __init__(self, count: int) -> None:
        self.raws = {f"n{number}": self.raw(f"n{number}") for number in range(count)}
        self.paths: list[str] = []
        self.received = 0
        self.fails = False

    def raw(self, name: str) -> dict[str, Any]:
        return builders.node(name, {"lease": False}, [])[0]

    def get(self, path: str, *, accept: str = "") -> dict[str, Any]:  # noqa: ARG002 - the shape of what it stands for
        self.paths.append(path)
        if self.fails:
            raise ApiForbidden(method="GET", path=path, problem="no")
        if "limit=" in path:
            return {"metadata": {"resourceVersion": "1"}, "items": list(self.raws.values())}
        name = path.rpartition("/")[2]
        if name not in self.raws:
            raise ApiNotFound(method="GET", path=path, problem="no")
        return self.raws[name]


class Beats:
    """Every node has a heartbeat."""

    def __init__(self, **durations: int) -> None:
        self.leases = {name: Lease("pacto-node-agent", name, 1.0, given) for name, given in durations.items()}

    def get(self, name: str) -> Heartbeat | None:  # noqa: ARG002 - the shape of what it stands for
        return Heartbeat(1.0)

    def all(self) -> dict[str, Heartbeat]:
        return dict.fromkeys(self.leases, Heartbeat(1.0))

    def __len__(self) -> int:
        return len(self.leases)

    def published(self, name: str, stamp: float | None) -> Heartbeat | None:
        """Not needed: there are Leases."""

    def lease(self, name: str) -> Lease | None:
        return self.leases.get(name)


def objects(clock: list[float]) -> NodeObjects:
    return NodeObjects("pacto-node-agent", Beats(), max_age=5, clock=lambda: clock[0])


def test_node_objects_are_read_when_they_are_too_old() -> None:
    clock, client = [100.0], Nodes(3)
    nodes = objects(clock)
    nodes.refresh(client, ["n0", "n1"])  # type: ignore[arg-type]
    nodes.refresh(client, ["n0", "n1"])  # type: ignore[arg-type]
    assert len(client.paths) == 2
    clock[0] += 6
    nodes.refresh(client, ["n0"])  # type: ignore[arg-type]
    assert len(client.paths) == 3


def test_an_object_of_a_node_that_publishes_often_is_read_as_often() -> None:
    """One as old as its Lease holds would read as stale while the node does all it should."""
    clock, client = [100.0], Nodes(2)
    beats = Beats(n0=6, n1=90)
    nodes = NodeObjects("pacto-node-agent", beats, max_age=5, clock=lambda: clock[0])
    nodes.refresh(client, ["n0", "n1"])  # type: ignore[arg-type]
    clock[0] += 3
    nodes.refresh(client, ["n0", "n1"])  # type: ignore[arg-type]
    assert [path.rpartition("/")[2] for path in client.paths] == ["n0", "n1", "n0"]


def test_many_node_objects_are_read_in_pages() -> None:
    client = Nodes(50)
    nodes = objects([100.0])
    nodes.refresh(client, client.raws)  # type: ignore[arg-type]
    assert len(client.paths) == 1
    assert len(nodes.records) == 50


def test_a_read_that_fails_leaves_the_old_object_and_its_old_heartbeat() -> None:
    clock, client = [100.0], Nodes(1)
    nodes = objects(clock)
    nodes.refresh(client, ["n0"])  # type: ignore[arg-type]
    record = nodes.records["n0"]
    client.fails = True
    clock[0] += 60
    nodes.refresh(client, ["n0", "n1"])  # type: ignore[arg-type]
    assert nodes.records["n0"] is record
    assert nodes.records["n1"].node is None


def test_nodes_that_nobody_asks_for_are_forgotten() -> None:
    clock, client = [100.0], Nodes(10)
    nodes = objects(clock)
    nodes.refresh(client, client.raws)  # type: ignore[arg-type]
    clock[0] += 1000
    nodes.refresh(client, ["n0"])  # type: ignore[arg-type]
    assert list(nodes.records) == ["n0"]


def test_an_object_that_breaks_while_a_generation_is_made_is_not_absent(world: World) -> None:
    """Its table is asked for what is broken and for what is whole in one step."""
    world.put("Service", "a", Service("ns", "a"))
    asked = []

    def trouble(kind: LiveKind) -> str:
        asked.append(kind.kind)
        # the first time is to tell whether anything is new
        if kind.kind == "Service" and asked.count("Service") == 2:
            world.put("Service", "a", Broken("spec.ports must be a list"))
        return ""

    world.live._trouble = trouble
    assert isinstance(world.live.generation().service("ns", "a"), Service | Unreadable)
    assert isinstance(world.live.generation(world.now).service("ns", "a"), Unreadable)


def test_a_list_that_comes_while_a_generation_is_made_does_not_vouch_for_what_was_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, world.trouble["Service"] = world.live.tables["Service"], "not listed yet"
    members = table.members

    def members_before_the_list() -> Any:
        found = members()
        table.replace({("ns", "a"): Service("ns", "a")})
        world.trouble.clear()
        return found

    monkeypatch.setattr(table, "members", members_before_the_list)
    assert isinstance(world.live.generation().service("ns", "a"), Unreadable)


def test_a_generation_that_could_not_be_made_is_made_again(world: World) -> None:
    world.live.generation()
    world.put("Service", "a", Service("ns", "a"))
    world.live.prepare = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        world.live.generation(world.now)
    world.live.prepare = lambda _: None
    assert isinstance(world.live.generation(world.now).service("ns", "a"), Service)
