# SPDX-License-Identifier: MIT
"""Whether a real agent's memory grows with the pods that came and went: `python -m tests.bench.soak` (root).

The agent is a process of its own with its kernel program, publishing five times a second. Pods are real:
each has a cgroup and a network namespace, listens, calls itself, is refused once, and ends. A few live at
a time. Resident memory is told after each quarter, as a ratio to the first, when all has been used once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Final

from tests.bench.agent_load import Agent, agent
from tests.support import inside
from tests.support.hosts import v2_root

PODS: Final = int(os.environ.get("PACTO_BENCH_PODS", "5000"))
ALIVE: Final = 20
PORT: Final = 8080
CALLS: Final = 5
INTERVAL: Final = "200ms"
PR_SET_PDEATHSIG: Final = 1


def live(group: Path) -> None:
    """A pod's whole life, in the process that becomes it; ends by a signal."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    inside.join(str(group))
    inside.new_netns()
    inside.listen("127.0.0.1", PORT)
    for _ in range(CALLS):
        with socket.create_connection(("127.0.0.1", PORT)):
            pass
    inside.connect("127.0.0.1", 9)
    signal.pause()


class Pods:
    """The pods that live now, the oldest first."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._alive: deque[tuple[int, Path]] = deque()

    def come(self) -> None:
        """One more pod; the oldest goes where too many live."""
        group = self._root / f"pod{uuid.uuid4()}" / (uuid.uuid4().hex * 2)
        group.mkdir(parents=True)
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                live(group)
            os._exit(1)
        self._alive.append((pid, group))
        if len(self._alive) > ALIVE:
            self.go()

    def go(self) -> None:
        """The oldest ends, and its cgroup with it."""
        pid, group = self._alive.popleft()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for path in (group, group.parent):
            _remove(path)

    def close(self) -> None:
        """All go."""
        while self._alive:
            self.go()


def _remove(path: Path) -> None:
    for _ in range(1000):
        with contextlib.suppress(OSError):
            path.rmdir()
            return
        time.sleep(0.005)  # the kernel empties a cgroup a moment after its last process


def measure(running: Agent, pods: Pods) -> tuple[list[float], int]:
    """Resident memory after each quarter, and the most pods that a look at the object found."""
    quarters, seen = [], 0
    for number in range(1, PODS + 1):
        pods.come()
        if number % 100 == 0:
            seen = max(seen, len(running.published().get("pods", [])))
        if number % (PODS // 4) == 0:
            quarters.append(running.rss_mib())
    return quarters, seen


def main() -> int:
    """Run and print; returns 0."""
    root = v2_root()
    assert root is not None, "no v2 cgroup hierarchy"
    top = root / f"pacto-bench-{os.getpid()}"
    (top / "kubepods").mkdir(parents=True)
    pods = Pods(top / "kubepods")
    try:
        with agent(interval=INTERVAL) as running:
            before, began = running.rss_mib(), time.monotonic()
            quarters, seen = measure(running, pods)
            seconds = time.monotonic() - began
            collection = running.published()["collection"]
    finally:
        pods.close()
        for path, _, _ in os.walk(top, topdown=False):  # an interrupted pod's, too
            _remove(Path(path))
    after = ", ".join(f"{mib:.1f} ({mib / quarters[0]:.3f})" for mib in quarters)
    print(
        f"{PODS} pods came and went in {seconds:.0f} s, up to {seen} in an object, published every {INTERVAL}"
    )
    print(f"resident: {before:.1f} MiB before; after each quarter {after}")
    told = f"{collection['state']}, {collection['droppedEvents']} events dropped"
    print(f"at the end: {told}, {collection['unattributedEvents']} that named no pod any more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
