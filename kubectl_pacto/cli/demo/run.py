# SPDX-License-Identifier: MIT
"""The demo from start to end: preflight, node, passes until the verdict stands, and the way out.

Called by the command. However it ends (done, an error, a signal) the node is closed before this
returns; a signal that comes while it closes changes nothing.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from kubectl_pacto.cli.demo.facts import Scene
from kubectl_pacto.cli.demo.judge import Judge, headlines, kubernetes_alone
from kubectl_pacto.cli.demo.node import Node, Wait
from kubectl_pacto.cli.demo.objects import Raw, cluster_objects
from kubectl_pacto.cli.demo.report import Outcome
from kubectl_pacto.errors import DemoFailed

PASS_SECONDS: Final = 0.5
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]


class Interrupted(BaseException):
    """A signal asks the demo to end; no `except Exception` may keep it."""


class Interrupts:
    """Notes the first signal for `check` and `wait` to raise, from `install` until `close`.

    A handler that raised wherever Python happens to be would leave library code half done: the lock with
    which subprocess waits for a child taken for ever, an exception dropped in a finalizer.
    """

    def __init__(self) -> None:
        self.number = 0
        self._before: dict[int, Any] = {}
        # a signal writes here, so that a wait ends at once
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wakeup = -1

    def install(self) -> None:
        """Take the signals over."""
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)

    def close(self) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(self._wakeup)
        self._before.clear()
        os.close(self._reading)
        os.close(self._writing)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.number = self.number or number

    def check(self) -> None:
        """Raise Interrupted if a signal came."""
        if self.number:
            raise Interrupted

    def wait(self, seconds: float, *files: IO[str]) -> bool:
        """Whether one of the files can be read before the time is over; raises Interrupted."""
        self.check()
        watched = [self._reading, *(file.fileno() for file in files)]
        readable, _, _ = select.select(watched, [], [], seconds)
        self.check()
        return bool(set(readable) - {self._reading})


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its outcome (None when interrupted), and whether nothing is left of it."""

    outcome: Outcome | None
    is_clean: bool
    signal: int = 0


def run(mount: str, *, timeout: float, keep: Path | None, say: Say) -> Ended:
    """Run the demo with its cgroups in `mount`; raises DemoFailed."""
    interrupts = Interrupts()
    node = Node(mount, interrupts.wait)
    outcome: Outcome | None = None
    try:
        interrupts.install()
        outcome = _watch(node, timeout, keep, say, interrupts.wait)
    except Interrupted:
        pass
    finally:
        node.close()
        interrupts.close()
        for problem in node.left:
            say(f"could not remove {problem}")
    return Ended(None if interrupts.number else outcome, not node.left, interrupts.number)


def _watch(node: Node, timeout: float, keep: Path | None, say: Say, wait: Wait) -> Outcome:
    started = time.time()
    deadline = time.monotonic() + timeout
    clocked = _clocked(say, started)
    node.open(clocked)
    _await_agent(node, deadline, wait)
    judge, said = Judge(), dict[str, str]()
    while True:
        began = time.monotonic()
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
        wait(max(0.0, PASS_SECONDS - (time.monotonic() - began)))
    if keep is not None:
        _keep(keep, objects, seen)
    return Outcome(judge, Scene(pods, seen, at), started, kubernetes_alone(objects, at))


def _await_agent(node: Node, deadline: float, wait: Wait) -> None:
    """Until its first publication nothing can be said: passes would only tell that."""
    while not node.view_file.exists() and time.monotonic() < deadline:
        node.check_agent()
        wait(0.05)


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
