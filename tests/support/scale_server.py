# SPDX-License-Identifier: MIT
"""The fleet's API server as a process: `python -m tests.support.scale_server SHAPE [CLOCK]`, prints its port.

It ends with its standard input. Heartbeats move by themselves; with a CLOCK (POSIX seconds) nothing moves
but through `/_/tick`, which sets the clock, too.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Final

from kubectl_pacto.model.node import AGENT_NAMESPACE
from tests.support import scale_objects as objects
from tests.support.scale_api import ScaleApi, serving
from tests.support.scale_objects import PODS_OF_ONE, Raw, Shape

RENEWAL_SECONDS: Final = 30
BOOKMARK_SECONDS: Final = 20


class Fleet:
    """The objects of a fleet in an API, and what may happen to them."""

    def __init__(self, shape: Shape, api: ScaleApi) -> None:
        self.shape = shape
        self.api = api
        self.edits = 0
        self.lives: dict[tuple[int, int], int] = {}
        self.on_node: dict[str, list[tuple[int, int]]] = {}
        self._fill()
        self.beating = 0
        self.now = 0.0
        api.controls["tick"] = self.tick

    def _fill(self) -> None:
        shape, api = self.shape, self.api
        for number in range(min(shape.namespaces, shape.pactos)):
            api.load("namespaces", {"metadata": {"name": f"team-{number}", "labels": {}}})
        for number in range(shape.pactos):
            deployment, between = objects.workloads(shape, number)
            api.load("pactos", objects.pacto(shape, number))
            api.load("deployments", deployment)
            api.load("replicasets", between)
            api.load("services", objects.service(shape, number))
            api.load("endpointslices", objects.endpoint_slice(shape, number))
            for index in range(PODS_OF_ONE):
                api.load("pods", objects.pod(shape, number, index))
                self.on_node.setdefault(objects.node_of(shape, number, index), []).append((number, index))
        for number in range(shape.nodes):
            name = f"node-{number}"
            api.load("noderuntimeobservations", self._node(name))
            api.load("leases", objects.lease(name))
            api.load("nodes", objects.machine(name))
        for resource in ("statefulsets", "jobs", "cronjobs", "ingresses", "httproutes", "pactorevisions"):
            api.collection(resource)

    def _node(self, name: str) -> Raw:
        views = [
            objects.view(self.shape, number, index, self.lives.get((number, index), 0))
            for number, index in self.on_node.get(name, ())
        ]
        return objects.node(name, views)

    def beat(self, count: int) -> None:
        """Renew so many heartbeats, in turn."""
        for _ in range(count):
            self.beating = (self.beating + 1) % self.shape.nodes
            self.api.put("leases", objects.lease(f"node-{self.beating}"))

    def replace_pod(self, number: int, index: int) -> None:
        """One pod goes, another comes in its place; its node and its slice say so."""
        before = self.lives.get((number, index), 0)
        namespace = objects.namespace_of(self.shape, number)
        self.api.delete("pods", (namespace, f"s{number}-{index}-{before}"))
        self.lives[number, index] = before + 1
        self.api.put("pods", objects.pod(self.shape, number, index, before + 1))
        lives = tuple(self.lives.get((number, one), 0) for one in range(PODS_OF_ONE))
        self.api.put("endpointslices", objects.endpoint_slice(self.shape, number, lives))
        name = objects.node_of(self.shape, number, index)
        self.api.collection("noderuntimeobservations").items[AGENT_NAMESPACE, name] = objects.encoded(
            self._node(name)
        )

    def edit_pacto(self, number: int, version: str) -> None:
        """A Pacto gets another contract."""
        namespace = objects.namespace_of(self.shape, number)
        before = json.loads(self.api.collection("pactos").items[namespace, f"s{number}"])
        after = objects.pacto(self.shape, number, version)
        after["metadata"]["generation"] = before["metadata"]["generation"] + 1
        after["status"] = before.get("status", {})
        self.api.put("pactos", after)

    def recreate_pacto(self, number: int) -> None:
        """A Pacto is deleted and made anew."""
        self.api.delete("pactos", (objects.namespace_of(self.shape, number), f"s{number}"))
        self.api.put("pactos", objects.pacto(self.shape, number))

    def tick(self, query: dict[str, str]) -> Raw:
        """A moment of a simulated life: `at`, and what happens then."""
        self.now = float(query["at"])
        for place in query.get("replace", "").split():
            number, _, index = place.partition("/")
            self.replace_pod(int(number), int(index))
        for number in query.get("edit", "").split():
            self.edits += 1
            self.edit_pacto(int(number), f"1.0.{self.edits}")
        for number in query.get("recreate", "").split():
            self.recreate_pacto(int(number))
        self.beat(int(query.get("beats", "0")))
        for trouble in query.get("trouble", "").split():
            {"compact": self.api.compact, "hangup": self.api.hang_up, "bookmark": self.api.bookmark}[
                trouble
            ]()
        return {}


async def live(fleet: Fleet, seconds: float = 0.25) -> None:
    """Heartbeats and bookmarks by the real clock."""
    owed, marked = 0.0, time.monotonic()
    while True:
        await asyncio.sleep(seconds)
        owed += fleet.shape.nodes * seconds / RENEWAL_SECONDS
        fleet.beat(int(owed))
        owed -= int(owed)
        if time.monotonic() - marked > BOOKMARK_SECONDS:
            fleet.api.bookmark()
            marked = time.monotonic()


async def _main(shape: Shape, clock: float | None) -> None:
    fleet = Fleet(shape, ScaleApi())
    if clock is not None:
        fleet.now, fleet.api.clock = clock, lambda: fleet.now
    server, port = await serving(fleet.api)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    beating = asyncio.create_task(live(fleet)) if clock is None else None
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    if beating is not None:
        beating.cancel()
    server.close()


if __name__ == "__main__":
    asyncio.run(_main(Shape(**json.loads(sys.argv[1])), float(sys.argv[2]) if sys.argv[2:] else None))
