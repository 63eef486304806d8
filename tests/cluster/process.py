# SPDX-License-Identifier: MIT
"""Background processes: started once, known by pid and start time, ended by that and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.deps import SEARCH
from tests.cluster.layout import Cluster, ClusterError

START_TIME: Final = 19  # of the fields after the command name in /proc/PID/stat
TAIL: Final = 15
POLL_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Process:
    """A pid and the start time that tells it from a later process of the same number."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this pid now; None when there is none or it is a zombie."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = text.rpartition(")")[2].split()  # the name may hold spaces and parentheses
        return None if fields[0] in "ZX" else cls(pid, int(fields[START_TIME]))

    @classmethod
    def read(cls, path: Path) -> Process | None:
        """What a pid file says; None when there is none, or one cut short by an interruption."""
        try:
            pid, started = path.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return cls(int(pid), int(started))

    def write(self, path: Path) -> None:
        """Leave a pid file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{self.pid} {self.started}\n")

    @property
    def alive(self) -> bool:
        """Whether it, and not a successor of its number, runs."""
        return Process.of(self.pid) == self

    def kill(self, number: int = signal.SIGKILL, wait: float = 60) -> None:
        """Signal it if it still is itself, and wait until it is gone."""
        try:
            descriptor = os.pidfd_open(self.pid)  # from here on the number cannot be reused under us
        except ProcessLookupError:
            return
        try:
            if self.alive:
                signal.pidfd_send_signal(descriptor, number)
                wait_until(lambda: not self.alive, wait)
        except ProcessLookupError:
            pass
        finally:
            os.close(descriptor)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)  # a child of this very program leaves no zombie

    def children(self) -> list[int]:
        """The pids of its children."""
        try:
            return [
                int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            ]
        except (FileNotFoundError, ProcessLookupError):
            return []


def wait_until(condition: Callable[[], object], timeout: float) -> bool:
    """Poll until the condition is true; False when the time ran out."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def pid_file(cluster: Cluster, component: str) -> Path:
    """Where a component's process is recorded."""
    return cluster.state / "pid" / component


def running(cluster: Cluster, component: str) -> Process | None:
    """The component's process if it runs."""
    process = Process.read(pid_file(cluster, component))
    return process if process and process.alive else None


def start(
    cluster: Cluster, component: str, netns: str | None, command: Sequence[str], cwd: Path | None = None
) -> Process:
    """Start a component in a network namespace unless it runs; its own session, so Ctrl-C spares it.

    An interruption between the start and the pid file is covered: `down` also ends whatever is
    left in the cluster's own network namespaces.
    """
    if process := running(cluster, component):
        return process
    log = cluster.log(component)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            [*(["nsenter", f"--net=/run/netns/{netns}", "--"] if netns else []), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"PATH": f"{os.environ.get('PATH', '')}:{SEARCH}"},
            cwd=cwd or cluster.state,
        )
    child.returncode = 0  # never reaped here on purpose: it outlives this program
    process = Process.of(child.pid)
    if process is None:
        raise ClusterError(f"{component} ended at once{tail(log)}")
    process.write(pid_file(cluster, component))
    return process


def tail(log: Path, lines: int = TAIL) -> str:
    """The end of a log as an indented block for an error message."""
    try:
        text = log.read_text(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return " (no log)"
    return "".join(f"\n    {line}" for line in [f"{log}:", *text])


def check(cluster: Cluster, component: str) -> None:
    """Fail with the log's tail when a started component no longer runs."""
    if running(cluster, component) is None:
        raise ClusterError(f"{component} is not running{tail(cluster.log(component))}")
