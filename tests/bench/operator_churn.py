# SPDX-License-Identifier: MIT
"""Whether the operator grows in a day of churn: `python -m tests.bench.operator_churn [--hours N] [--json]`.

The operator's own parts and threads against an API server in another process, by a clock that this one
turns: pods come and go, nodes publish, Pactos are edited and made anew, watches break (410, end of file).
"""

from __future__ import annotations

import time
from typing import Any, Final

START: Final = 1_792_314_764.0  # 2026-10-18T09:12:44Z


class SimulatedClock:
    """Both clocks of the product; it stands still until it is turned."""

    def __init__(self) -> None:
        self.passed = 0.0

    def wall(self) -> float:
        """POSIX seconds."""
        return START + self.passed

    def monotonic(self) -> float:
        """Seconds since some beginning."""
        return 1000.0 + self.passed


CLOCK: Final = SimulatedClock()
# before anything of the product is imported, which binds its clocks as defaults
REAL: Final = time.monotonic
if __name__ == "__main__":
    import asyncio  # noqa: F401 -- and threading and selectors with it, which keep the real clock

    time.time, time.monotonic = CLOCK.wall, CLOCK.monotonic

import argparse  # noqa: E402
import gc  # noqa: E402
import http.client  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from urllib.parse import urlencode  # noqa: E402

from kubectl_pacto.collect.compact import POOL  # noqa: E402
from kubectl_pacto.controller.connection import Connection  # noqa: E402
from kubectl_pacto.controller.node_agent import NodeAgents  # noqa: E402
from kubectl_pacto.controller.operator import Operator  # noqa: E402
from kubectl_pacto.controller.options import settings  # noqa: E402
from kubectl_pacto.kube.transport import Server  # noqa: E402
from tests.bench.scale import Process, ask, fleet_server  # noqa: E402
from tests.support.scale_objects import PODS_OF_ONE, Shape  # noqa: E402

TICK: Final = 10.0
RENEWAL: Final = 30.0
CLEANING: Final = 60.0
CATCH_UP: Final = 60.0
ARENAS: Final = ("MALLOC_ARENA_MAX", "1")
POD: Final = {"POD_NAMESPACE": "pacto-operator-system", "POD_NAME": "churn"}


class Day:
    """An operator, and the server that it watches, tick by tick."""

    def __init__(self, shape: Shape, port: int, pace: float = 1.0) -> None:
        self.shape = shape
        self.pace = pace
        self.chance = random.Random(7)
        self.control = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection = Connection(Server("127.0.0.1", port, tls=False), lambda: None)
        told = settings(["--enable-node-agent"], POD)
        self.operator = Operator(told, connection)
        self.client = connection.client()
        self.agents = NodeAgents(told.agent, told.agent_namespace)
        self.checks = 0
        self.owed = 0.0

    def say(self, **words: Any) -> dict[str, Any]:
        """Tell the server what happens now."""
        self.control.request("GET", f"/_/tick?{urlencode({'at': CLOCK.wall(), **words})}")
        found: dict[str, Any] = json.loads(self.control.getresponse().read())
        return found

    def begin(self) -> None:
        """Lists, and all heartbeats seen to move."""
        self.operator.watch()
        for name, reflector in self.operator.reflectors.items():
            if not reflector.wait_listed(30):
                raise TimeoutError(name)
        CLOCK.passed += RENEWAL
        self.say(beats=self.shape.nodes, trouble="bookmark")
        self.catch_up()

    def catch_up(self) -> None:
        """Wait until each watch has come to the bookmark of now; a broken one takes its real time."""
        deadline = REAL() + CATCH_UP
        while any(one.silence for one in self.operator.reflectors.values()):
            if REAL() > deadline:
                raise TimeoutError("a watch does not come back")
            threading.Event().wait(0.001)

    def tick(self, **words: Any) -> None:
        """Some seconds pass: things happen, hearts beat, what is due is checked."""
        CLOCK.passed += TICK - 1
        self.say(**words)
        CLOCK.passed += 1
        self.owed += self.shape.nodes * TICK / RENEWAL
        beats, self.owed = int(self.owed), self.owed - int(self.owed)
        self.say(beats=beats, trouble="bookmark")
        self.catch_up()
        if "trouble" in words:
            # a watch that is opened again is alive before it has told what was missed
            threading.Event().wait(0.1)
        if CLOCK.passed % CLEANING < TICK:
            self.agents.ensure(self.client)
            self.agents.clean(self.client)
        while (taken := self.operator.queue.take(0)) is not None:
            self.operator._reconcile(self.client, taken)
            self.checks += 1

    def events(self, second: float) -> dict[str, Any]:
        """What happens in a tick: each hour pods, edits, new Pactos, and each kind of broken watch."""
        draw, words = self.chance.random, {}
        share, place = TICK * self.pace / 3600, second * self.pace % 3600
        if draw() < share * self.shape.pactos:
            words["replace"] = f"{self._any()}/{self.chance.randrange(PODS_OF_ONE)}"
        if draw() < share * self.shape.pactos / 5:
            words["edit"] = f"{self._any()}"
        if draw() < share * self.shape.pactos / 20:
            words["recreate"] = f"{self._any()}"
        if place == 1800:
            words["trouble"] = "hangup"
        if place == 2700:
            words["trouble"] = "compact hangup"
        return words

    def _any(self) -> int:
        return self.chance.randrange(self.shape.pactos)

    def sizes(self) -> dict[str, int]:
        """How many entries everything that is kept holds."""
        operator, live = self.operator, self.operator.live
        found = {f"table {kind}": len(table) for kind, table in live.tables.items()}
        found |= {f"queue {number}": size for number, size in enumerate(operator.queue.sizes())}
        found["heartbeats"] = len(operator.heartbeats)
        found["node records"] = len(operator.nodes.records)
        found["packed views"] = sum(len(record.views) for record in operator.nodes.records.values())
        found["metrics"] = len(operator.metrics._pactos)
        found["triggers"] = len(operator._triggers._by_target) + len(operator._triggers._by_provider)
        found["contracts"] = len(operator._reconciler._parts.loader)  # type: ignore[arg-type]
        found["put off"] = len(operator._reconciler._put_off)
        found["awaited"] = len(operator._reconciler._awaited)
        found["pool"] = len(POOL)
        return found

    def revisions(self) -> int:
        """How many revisions the simulated cluster has by now: those of all edits stay."""
        return len(self.operator._registries.revisions.table)

    def close(self) -> None:
        """End everything."""
        self.operator.close()
        self.client.close()
        self.control.close()


@contextmanager
def a_day(shape: Shape, pace: float) -> Iterator[tuple[Day, int]]:
    """A day that has begun, and the server's port."""
    with fleet_server(shape, str(CLOCK.wall())) as port:
        day = Day(shape, port, pace)
        try:
            day.begin()
            yield day, port
        finally:
            day.close()


def blocks() -> int:
    """How many blocks of memory Python's objects have: what is kept, without the gaps in between."""
    gc.collect()
    return sys.getallocatedblocks()


def slope(points: list[float]) -> float:
    """By how much a series grows from one point to the next, by least squares."""
    middle, mean = (len(points) - 1) / 2, sum(points) / len(points)
    spread = sum((index - middle) ** 2 for index in range(len(points)))
    return sum((index - middle) * (point - mean) for index, point in enumerate(points)) / (spread or 1)


def live_through(shape: Shape, given: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """A row of figures for each hour, or as often as told."""
    process = Process(os.getpid())
    with a_day(shape, given.pace) as (day, port):
        began, passed = CLOCK.passed, 0.0
        while passed < given.hours * 3600:
            day.tick(**day.events(passed))
            passed = CLOCK.passed - began
            if passed % given.every == 0:
                resident, _ = process.memory()
                lists = sum(one.lists for one in day.operator.reflectors.values())
                row = {"hour": passed / 3600, "mib": resident, "checks": day.checks, "lists": lists}
                row |= {"blocks": blocks(), "revisions": day.revisions()}
                rows.append({**row, "cpu": process.cpu(), "sizes": day.sizes()})
                if not given.json:
                    print(
                        f"hour {passed / 3600:3.0f}: {resident:.1f} MiB, {rows[-1]['blocks']} blocks, "
                        f"{day.checks} checks, {lists} lists, {sum(rows[-1]['sizes'].values())} entries, "
                        f"{day.revisions()} revisions",
                        flush=True,
                    )
        # an interval in peace: what was about to be checked again has been
        for _ in range(int(shape.interval / TICK) + 1):
            day.tick()
        rows[-1]["server"] = ask(port, "stats")


def as_deployed() -> None:
    """Begin anew with the allocator set as the operator's Deployment sets it."""
    (name, value) = ARENAS
    if os.environ.get(name) != value:
        os.environ[name] = value
        os.execv(sys.executable, sys.orig_argv)


def main() -> int:
    """Live through a day and print it; 1 if not all was judged as it should be at its end."""
    made = argparse.ArgumentParser()
    made.add_argument("--hours", type=float, default=24.0)
    made.add_argument("--pactos", type=int, default=60)
    made.add_argument("--nodes", type=int, default=30)
    made.add_argument("--every", type=float, default=3600.0, help="simulated seconds between two rows")
    made.add_argument("--pace", type=float, default=1.0, help="so many times as much happens")
    made.add_argument("--json", action="store_true")
    given = made.parse_args()
    as_deployed()
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows: list[dict[str, Any]] = []
    shape, began = Shape(given.pactos, given.nodes, namespaces=20), REAL()
    live_through(shape, given, rows)
    verdicts = rows[-1]["server"]["verdicts"]
    if given.json:
        print(json.dumps(rows))
        return 0
    settled = rows[len(rows) // 4 :]
    print(f"{shape.pactos} Pactos, {shape.nodes} nodes, {shape.pods} pods")
    print(f"{given.hours:g} simulated hours took {REAL() - began:.0f} s")
    each = 3600 / given.every
    resident, kept, more = (slope([row[name] for row in settled]) for name in ("mib", "blocks", "revisions"))
    print(f"after the first quarter: {resident * 1024 * each:+.1f} KiB resident an hour")
    print(f"and {kept * each:+.0f} blocks an hour with {more * each:+.1f} revisions")
    print(f"verdicts {verdicts} {rows[-1]['server']['findings'] or ''}")
    return 0 if set(verdicts) == {"Compliant"} else 1


if __name__ == "__main__":
    sys.exit(main())
