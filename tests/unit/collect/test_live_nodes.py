# SPDX-License-Identifier: MIT
"""How many requests node objects cost, and how old they may be: told by a clock and a counting client."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kubectl_pacto.collect.live_nodes import MAX_AGE, ONE_BY_ONE, NodeObjects
from kubectl_pacto.kube.errors import ApiForbidden, ApiNotFound
from kubectl_pacto.model.bounds import PUBLISH_INTERVAL_SECONDS
from kubectl_pacto.model.kube import Lease
from kubectl_pacto.model.node import AGENT_NAMESPACE
from kubectl_pacto.model.snapshot import Heartbeat
from tests.support import builders


class Nodes:
    """A client of node objects: what it was asked for, and what a list of them costs in seconds."""

    def __init__(self, count: int) -> None:
        self.now = 1000.0
        self.raws = {name: self.raw(name) for name in (f"n{number}" for number in range(count))}
        self.paths: list[str] = []
        self.received = 0
        self.seconds = 0.0
        self.fails = False
        self.on_list: Callable[[], None] = lambda: None

    def raw(self, name: str) -> dict[str, Any]:
        return builders.node(name, {"lease": False}, [])[0]

    def get(self, path: str, *, accept: str = "") -> dict[str, Any]:  # noqa: ARG002 - a client's shape
        self.paths.append(path)
        if self.fails:
            raise ApiForbidden(method="GET", path=path, problem="no")
        if "limit=" in path:
            self.on_list()
            self.now += self.seconds
            return {"metadata": {"resourceVersion": "1"}, "items": list(self.raws.values())}
        name = path.rpartition("/")[2]
        if name not in self.raws:
            raise ApiNotFound(method="GET", path=path, problem="no")
        return self.raws[name]

    @property
    def lists(self) -> int:
        """How many pages were asked for."""
        return sum("limit=" in path for path in self.paths)


class Beats:
    """Heartbeats of all nodes that a client has, at a time that the test sets."""

    def __init__(self, client: Nodes, duration: int = 90) -> None:
        self.at = 1.0
        self.client = client
        self.duration = duration

    def get(self, name: str) -> Heartbeat | None:
        return self.all().get(name)

    def all(self) -> dict[str, Heartbeat]:
        return dict.fromkeys(self.client.raws, Heartbeat(self.at))

    def published(self, name: str, stamp: float | None) -> Heartbeat | None:  # noqa: ARG002 - its shape
        return None

    def lease(self, name: str) -> Lease | None:
        return Lease(AGENT_NAMESPACE, name, 1.0, self.duration)

    def __len__(self) -> int:
        return len(self.client.raws)


def objects(client: Nodes, max_age: float = MAX_AGE, duration: int = 90) -> NodeObjects:
    beats = Beats(client, duration)
    return NodeObjects(AGENT_NAMESPACE, beats, max_age=max_age, clock=lambda: client.now)


def ask(nodes: NodeObjects, client: Nodes, names: list[str]) -> None:
    nodes.refresh(client, names)  # type: ignore[arg-type]


@pytest.mark.parametrize("checks", [100, 1000, 5000])
def test_requests_do_not_grow_with_the_checks_that_ask(checks: int) -> None:
    client, chance = Nodes(100), random.Random(3)
    nodes = objects(client)
    began = client.now
    for _ in range(checks):
        ask(nodes, client, chance.sample(sorted(client.raws), 5))
        client.now += 300 / checks
    reads = (client.now - began) / MAX_AGE + 1
    assert client.lists <= reads
    assert len(client.paths) - client.lists <= ONE_BY_ONE + 5


def test_where_few_nodes_of_many_are_asked_for_no_list_is_made() -> None:
    client = Nodes(1000)
    nodes = objects(client)
    for number in range(100):
        ask(nodes, client, [f"n{number}"])
    assert client.lists == 0
    ask(nodes, client, [f"n{number}" for number in range(100, 200)])
    assert client.lists == 1


def test_who_asks_for_what_is_fresh_does_not_wait_for_a_read_of_others() -> None:
    client = Nodes(3)
    nodes = objects(client)
    ask(nodes, client, ["n0"])
    with nodes._lock:  # as while somebody reads
        ask(nodes, client, ["n0"])
    assert len(client.paths) == 1


def test_the_heartbeat_of_a_list_is_the_one_before_its_first_page() -> None:
    client = Nodes(50)
    beats = Beats(client)
    nodes = NodeObjects(AGENT_NAMESPACE, beats, clock=lambda: client.now)
    client.on_list = lambda: setattr(beats, "at", 2.0)
    ask(nodes, client, list(client.raws))
    assert {one.heartbeat for one in nodes.of(client.raws).values()} == {Heartbeat(1.0)}


def test_what_a_list_does_not_have_is_gone_and_what_is_broken_is_nothing() -> None:
    client = Nodes(50)
    nodes = objects(client)
    ask(nodes, client, list(client.raws))
    del client.raws["n1"]
    client.raws["n2"]["pods"] = "none"
    client.now += MAX_AGE + 1
    ask(nodes, client, [f"n{number}" for number in range(50)])
    assert client.lists == 2
    assert nodes.records["n1"].node is None
    assert nodes.records["n2"].node is None
    assert nodes.records["n3"].node is not None


def test_a_list_that_fails_is_not_asked_for_by_every_check_and_comes_back() -> None:
    client = Nodes(50)
    nodes = objects(client)
    ask(nodes, client, list(client.raws))
    before = dict(nodes.records)
    client.fails = True
    client.now += MAX_AGE + 1
    for number in range(50):
        ask(nodes, client, [f"n{number}"])
    assert client.lists == 2
    assert nodes.records == before
    client.fails, client.now = False, client.now + MAX_AGE + 1
    ask(nodes, client, ["n0"])
    assert nodes.records["n0"].read_at == client.now


@pytest.mark.parametrize(
    ("seconds", "max_age", "duration", "age"),
    [
        (0.1, MAX_AGE, 90, MAX_AGE),
        (4.0, MAX_AGE, 90, 16.0),
        (20.0, MAX_AGE, 90, PUBLISH_INTERVAL_SECONDS),
        (20.0, MAX_AGE, 30, 10.0),
        (20.0, 5.0, 90, 5.0),
    ],
)
def test_dear_lists_are_rarer_but_never_rarer_than_nodes_publish(
    seconds: float, max_age: float, duration: int, age: float
) -> None:
    client = Nodes(50)
    client.seconds = seconds
    nodes = objects(client, max_age, duration)
    ask(nodes, client, list(client.raws))
    read = nodes.records["n0"].read_at
    client.now = read + age
    ask(nodes, client, ["n0"])
    assert client.lists == 1
    client.now = read + age + 0.1
    ask(nodes, client, ["n0"])
    assert client.lists == 2
