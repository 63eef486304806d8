# SPDX-License-Identifier: MIT
"""The applications that run while things break, and what every status said meanwhile."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import yaml

from tests.acceptance import expect
from tests.acceptance.actions import act
from tests.acceptance.release import OPERATORS
from tests.acceptance.scene import Scene, World
from tests.acceptance.table import Scenario, _scenario
from tests.acceptance.watcher import API
from tests.cluster.api import ApiError, Object
from tests.cluster.live import Live

GROUND: Final = Path(__file__).parent / "ground.yaml"
CALM_SECONDS: Final = 150.0
POKE_SECONDS: Final = 2.5
# rightly accused, of this and of nothing else
GUILTY: Final[Mapping[str, frozenset[str]]] = {"bad": frozenset({"INTERFACE_ABSENT"})}


class Wronged(AssertionError):
    """Somebody was accused because something else broke, or it did not heal."""


@dataclass(frozen=True)
class Fault:
    """What breaks, how, and what may be asked of it.

    `breaks` returns when the fault is over. `restarts` says that operators may end in it; `local` that it
    needs the cluster of this package; `short` that CI can afford it.
    """

    name: str
    what: str
    breaks: Callable[[Ground], None]
    restarts: bool = False
    local: bool = False
    short: bool = False


@dataclass(frozen=True)
class Told:
    """A line of the table: what was claimed before, during and after, and the seconds until it healed."""

    fault: Fault
    lasted: float
    before: str
    during: str
    after: str
    healed: float


def ground_scenario() -> Scenario:
    """The applications, and what calm is."""
    (raw,) = yaml.safe_load(GROUND.read_text())
    return _scenario(raw)


class Ground:
    """The namespace in which everything runs on."""

    def __init__(self, world: World, folder: Path, scenario: Scenario | None = None) -> None:
        """Nothing runs yet."""
        self.world = world
        self.folder = folder
        self.scenario = scenario or ground_scenario()
        self.scene = Scene(world, self.scenario)

    @property
    def live(self) -> Live:
        """The cluster."""
        return self.world.live

    def start(self) -> None:
        """Deploy, and wait until all is calm."""
        self.scene.run(act)

    def stop(self) -> None:
        """Take the namespace away."""
        self.live.api.delete("v1", "Namespace", self.scene.namespace)

    def wrong(self) -> dict[str, str]:
        """Who does not say what he says in calm times, and what he says instead."""
        expected = self.scenario.steps[0].expect
        told = {name: expect.mismatch(one, self.scene.status(name)) for name, one in expected.items()}
        return {name: text for name, text in told.items() if text}

    def calm(self, since: float) -> float:
        """Wait until all is as it should be, and two seconds on still is. Raises Wronged.

        Seconds from `since` until the last status that was wrong became right.
        """
        deadline = time.monotonic() + CALM_SECONDS
        while True:
            while wrong := self.wrong():
                if time.monotonic() > deadline:
                    raise Wronged(f"not calm after {CALM_SECONDS:g} s: {wrong}")
                self.world.watcher.wait(1.0)
            at = time.monotonic()
            time.sleep(2)
            if not self.wrong():
                return max(0.0, self._last_change(since, at) - since)

    def _last_change(self, since: float, at: float) -> float:
        """When the last status that is told after `since` came to be what it is."""
        found = [since]
        for name in self.scenario.apps:
            seen = self.world.watcher.history((self.scene.namespace, name), since)
            changes = [
                now.at for was, now in pairwise(seen) if expect.short(was.status) != expect.short(now.status)
            ]
            found += [change for change in changes if change <= at]
        return max(found)

    def claims(self, begun: float, ended: float) -> dict[str, list[tuple[float, str, Object]]]:
        """All that was told of each application in a time: seconds, in a few words, the status."""
        found = {}
        for name in self.scenario.apps:
            seen = self.world.watcher.history((self.scene.namespace, name), begun)
            found[name] = [
                (one.at - begun, expect.short(one.status), one.status) for one in seen if one.at <= ended
            ]
        return found

    @contextmanager
    def poked(self) -> Iterator[None]:
        """Change each Pacto a little all the time, so that it is checked in every state of the fault."""
        over = threading.Event()
        thread = threading.Thread(target=self._poke, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60)

    def _poke(self, over: threading.Event) -> None:
        number = 0
        while not over.wait(POKE_SECONDS):
            number += 1
            change = {"spec": {"checkIntervalSeconds": 31 + number % 2}}
            for name in self.scenario.apps:
                with contextlib.suppress(OSError, ApiError):
                    self.live.api.patch(API, "Pacto", name, change, self.scene.namespace)

    def operators(self) -> set[tuple[str, int]]:
        """The operators' pods, and how often each was started again."""
        pods = self.live.pods(OPERATORS, "app.kubernetes.io/name=pacto-operator")
        return {
            (
                pod["metadata"]["name"],
                sum(one["restartCount"] for one in pod["status"].get("containerStatuses", [])),
            )
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
        }

    def through(self, fault: Fault) -> Told:
        """One fault from calm to calm. Raises Wronged."""
        self.calm(time.monotonic())
        operators, begun = self.operators(), time.monotonic()
        before = self._in_words(self.claims(begun, begun))
        with self.poked():
            fault.breaks(self)
        over = time.monotonic()
        healed = self.calm(over)
        ended = time.monotonic()
        claims = self.claims(begun, ended)
        self._check(fault, claims)
        if not fault.restarts and self.operators() != operators:
            raise Wronged(f"{fault.name}: operators {operators} became {self.operators()}")
        after = self._in_words(self.claims(ended, ended))
        return Told(fault, over - begun, before, self._changes(claims), after, healed)

    def _check(self, fault: Fault, claims: Mapping[str, Sequence[tuple[float, str, Object]]]) -> None:
        for name, told in claims.items():
            for at, words, status in told:
                errors = {one["code"] for one in status.get("findings", ()) if one["severity"] == "error"}
                if wrong := errors - GUILTY.get(name, frozenset()):
                    text = expect.summary(status)
                    raise Wronged(f"{fault.name}: {name} was accused of {wrong} after {at:.1f} s: {text}")
                if name in GUILTY and words.startswith("Compliant"):
                    raise Wronged(f"{fault.name}: {name} was called Compliant after {at:.1f} s")

    def _in_words(self, claims: Mapping[str, Sequence[tuple[float, str, Object]]]) -> str:
        return "; ".join(f"{name}: {told[-1][1]}" for name, told in claims.items() if told)

    def _changes(self, claims: Mapping[str, Sequence[tuple[float, str, Object]]]) -> str:
        """Each claim that differs from the one before, with its second."""
        parts = []
        for name, told in claims.items():
            changes = [f"{now[0]:.0f} s {now[1]}" for before, now in pairwise(told) if before[1] != now[1]]
            if changes:
                parts.append(f"{name}: {', '.join(changes)}")
        return "; ".join(parts) or "nothing changed"
