# SPDX-License-Identifier: MIT
"""The demo from start to end: preflight, node, passes until the verdict stands, and the way out.

Called by the command. However it ends (done, an error, a signal) the node is closed before this
returns; a signal that comes while it closes changes nothing.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from kubectl_pacto.cli.demo.facts import Scene
from kubectl_pacto.cli.demo.judge import Judge, headlines, kubernetes_alone
from kubectl_pacto.cli.demo.node import Node
from kubectl_pacto.cli.demo.objects import Raw, cluster_objects
from kubectl_pacto.cli.demo.report import Outcome
from kubectl_pacto.errors import DemoFailed

PASS_SECONDS: Final = 0.5
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]


class Interrupted(BaseException):
    """A signal asks the demo to end; no `except Exception` may keep it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(slots=True)
class Interrupts:
    """Turns the first signal into Interrupted, unless it is held already; later ones are ignored."""

    held: bool = False
    number: int = 0

    def install(self) -> None:
        """Take the signals over; what a dropped one raised is not said, for `check` raises it again."""
        otherwise = sys.unraisablehook

        def on_dropped(dropped: sys.UnraisableHookArgs) -> None:
            if not issubclass(dropped.exc_type, Interrupted):
                otherwise(dropped)

        sys.unraisablehook = on_dropped
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.number = self.number or number
        if not self.held:
            self.held = True
            raise Interrupted(number)

    def check(self) -> None:
        """Raise Interrupted if one came where Python drops exceptions: a finalizer, a weak reference."""
        if self.number:
            raise Interrupted(self.number)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its outcome (None when interrupted), and whether nothing is left of it."""

    outcome: Outcome | None
    is_clean: bool
    signal: int = 0


def run(mount: str, *, timeout: float, keep: Path | None, say: Say) -> Ended:
    """Run the demo with its cgroups in `mount`; raises DemoFailed."""
    interrupts, node = Interrupts(), Node(mount)
    outcome: Outcome | None = None
    try:
        try:
            interrupts.install()
            outcome = _watch(node, timeout, keep, say, interrupts.check)
        finally:
            interrupts.held = True
            node.close()
    except Interrupted:
        interrupts.held = True
        node.close()  # the signal may have come just before the first one
    finally:
        for problem in node.left:
            say(f"could not remove {problem}")
    return Ended(None if interrupts.number else outcome, not node.left, interrupts.number)


def _watch(node: Node, timeout: float, keep: Path | None, say: Say, check: Callable[[], None]) -> Outcome:
    started = time.time()
    deadline = time.monotonic() + timeout
    clocked = _clocked(say, started)
    node.open(clocked)
    _await_agent(node, deadline, check)
    judge, said = Judge(), dict[str, str]()
    while True:
        began = time.monotonic()
        check()
        node.check_agent()
        pods, seen = node.pods(), _node_objects(node.view_file)
        at = int(time.time() * 1000) / 1000  # as --at can say it: a replay is the same pass
        objects = [*cluster_objects(pods, judge.statuses), *seen]
        judge.judge(objects, at)
        for name, line in headlines(judge.statuses).items():
            if said.get(name) != line:
                said[name] = line
                clocked(f"{name} {line}")
        if not judge.missing() or time.monotonic() >= deadline:
            break
        time.sleep(max(0.0, PASS_SECONDS - (time.monotonic() - began)))
    if keep is not None:
        _keep(keep, objects, seen)
    return Outcome(judge, Scene(pods, seen, at), started, kubernetes_alone(objects, at))


def _await_agent(node: Node, deadline: float, check: Callable[[], None]) -> None:
    """Until its first publication nothing can be said: passes would only tell that."""
    while not node.view_file.exists() and time.monotonic() < deadline:
        check()
        node.check_agent()
        time.sleep(0.05)


def _clocked(say: Say, started: float) -> Say:
    return lambda line: say(f"{time.time() - started:5.1f} s  {line}")


def _node_objects(path: Path) -> list[Raw]:
    """What the agent published: its node object and Lease; none before its first publication."""
    try:
        items: list[Raw] = json.loads(path.read_text(encoding="utf-8"))["items"]
    except FileNotFoundError:
        return []
    for item in items:
        collection: dict[str, Any] = item.get("collection", {})
        if collection.get("state") == "Failed":
            words = f"{collection['reason']}: {collection['message']}"
            raise DemoFailed(problem=f"the node agent cannot collect: {words}")
    return items


def make_folder(directory: Path) -> None:
    """The folder of --keep. Raises DemoFailed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoFailed(problem=f"--keep {directory}: {error.strerror}") from error


def _keep(directory: Path, objects: list[Raw], seen: list[Raw]) -> None:
    """Write the objects of the last pass, so that `evaluate` gives its verdict again."""
    import yaml

    cluster = [item for item in objects if not any(item is other for other in seen)]
    make_folder(directory)
    try:
        for name, items in (("cluster.yaml", cluster), ("node.yaml", seen)):
            text = yaml.safe_dump_all(items, sort_keys=False, allow_unicode=True, width=100)
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DemoFailed(problem=f"--keep {directory}: {error.strerror}") from error


def stderr_say(line: str) -> None:
    """One line of progress."""
    print(line, file=sys.stderr, flush=True)
