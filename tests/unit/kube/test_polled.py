# SPDX-License-Identifier: MIT
"""One object that is asked for by name, as a reflector of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kubectl_pacto.collect.live import Table
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.polled import PolledObject
from kubectl_pacto.kube.stream import Watch
from kubectl_pacto.kube.transport import HttpTransport, Server
from tests.support.fake_api import FakeApi, Fault, serve

PATH = "/api/v1/namespaces/shop"


class World:
    """A table that follows one Namespace."""

    def __init__(self, api: FakeApi, server: Server) -> None:
        self.api = api
        self.table: Table[str] = Table()
        self.polled = PolledObject(PATH, lambda raw: str(raw["metadata"]["labels"]["a"]), self.table)
        self.polled.poll_seconds = 0.02
        self._client = Client(HttpTransport(server))
        self._thread = threading.Thread(target=self.polled.run, args=(self._client, Watch(server)))
        self._thread.start()

    def end(self) -> None:
        """End the thread."""
        self.polled.stop()
        self._thread.join(10)
        self._client.close()
        assert not self._thread.is_alive()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def world() -> Iterator[World]:
    api = FakeApi()
    api.put(PATH, {"metadata": {"name": "shop", "labels": {"a": "1"}}})
    with serve(api) as server:
        made = World(api, server)
        yield made
        made.end()


def test_it_is_followed_through_change_and_removal(world: World) -> None:
    until(lambda: world.table.get(("", "shop")) == "1")
    assert world.polled.is_listed
    assert world.polled.trouble == ""
    world.api.put(PATH, {"metadata": {"name": "shop", "labels": {"a": "2"}}})
    until(lambda: world.table.get(("", "shop")) == "2")
    del world.api.objects[PATH]
    until(lambda: world.table.get(("", "shop")) is None)
    assert world.polled.trouble == ""  # not there is an answer


def test_a_refusal_is_a_trouble_and_passes() -> None:
    api = FakeApi()
    api.faults.append(Fault(status=403))
    with serve(api) as server:
        made = World(api, server)
        until(lambda: "not allowed" in made.polled.trouble)
        assert not made.polled.is_listed
        api.put(PATH, {"metadata": {"name": "shop", "labels": {"a": "1"}}})
        until(lambda: made.polled.is_listed)
        assert made.polled.trouble == ""
        made.end()


def test_lists_and_watches_are_never_asked_for(world: World) -> None:
    until(lambda: len(world.api.seen) > 3)
    assert {(seen.method, seen.path) for seen in world.api.seen} == {("GET", PATH)}
