# SPDX-License-Identifier: MIT
"""A make-believe node: pods with cgroups as the kubelet names them and network namespaces of their own.

All cgroups lie below one directory of this process in the v2 tree, and every process in them was
started here; both are gone when the host closes, also after a failed test. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.support import inside

PREFIX: Final = "pacto-test-"
PATIENCE: Final = float(os.environ.get("PACTO_PATIENCE", "30"))  # seconds; an emulator needs more


def v2_root() -> Path | None:
    """Where the v2 hierarchy is mounted, None where it is not."""
    for path in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        if (path / "cgroup.controllers").exists():
            return path
    return None


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait until `condition` holds; fails naming `what`."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}"
        time.sleep(0.02)


class Worker:
    """One process under a test's command."""

    def __init__(self, group: Path | None, netns: int | None) -> None:
        """`netns`: the pid whose network namespace to enter, 0 for a new one, None for ours."""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-u", inside.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.group = group
        if group is not None:
            self.run(f"join({str(group)!r})")
        if netns is not None:
            self.run("new_netns()" if netns == 0 else f"enter_netns({netns})")

    @property
    def pid(self) -> int:
        """Its process number."""
        return self.process.pid

    def run(self, source: str) -> Any:
        """Run a piece of Python in it and return its value; raises what it raised, as text."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(source) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, f"the process ended while it ran {source!r}"
        answer = json.loads(line)
        assert "error" not in answer, f"{source}\n{answer.get('error')}"
        return answer["value"]

    def number(self, source: str) -> int:
        """run() of something that gives a number."""
        value = self.run(source)
        assert isinstance(value, int)
        return value

    @property
    def netns(self) -> int:
        """The inode of its network namespace."""
        return Path(f"/proc/{self.pid}/ns/net").stat().st_ino

    def end(self, number: int = signal.SIGKILL) -> None:
        """Kill it and wait; may be called twice."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Pod(Worker):
    """A pod with one process, that made its network namespace."""

    def __init__(self, uid: str, group: Path, netns: int | None) -> None:
        super().__init__(group, netns)
        self.uid = uid


class Host:
    """The node; close() ends its processes and removes its cgroups."""

    def __init__(self) -> None:
        root = v2_root()
        assert root is not None, "no v2 cgroup hierarchy"
        self.root = root / f"{PREFIX}{os.getpid()}"
        _remove_leftovers(root)
        self.root.mkdir()
        self._workers: list[Worker] = []

    def group(self, path: str) -> Path:
        """A cgroup directory of this host, made now."""
        found = self.root / path
        found.mkdir(parents=True, exist_ok=True)
        return found

    def pod_group(self, uid: str, *, systemd: bool = False, container: str = "") -> Path:
        """The cgroup of a container of a burstable pod, as the kubelet's driver names it."""
        name = container or uuid.uuid4().hex * 2
        if systemd:
            inner = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice/cri-containerd-{name}.scope"
            return self.group(f"kubepods.slice/kubepods-burstable.slice/{inner}")
        return self.group(f"kubepods/burstable/pod{uid}/{name}")

    def pod(self, *, uid: str = "", systemd: bool = False, netns: int | None = 0) -> Pod:
        """A new pod; `netns` as for Worker."""
        named = uid or str(uuid.uuid4())
        made = Pod(named, self.pod_group(named, systemd=systemd), netns)
        self._workers.append(made)
        return made

    def beside(self, pod: Pod) -> Worker:
        """One more process in a pod's cgroup and network namespace."""
        return self.process(pod.group, pod.pid)

    def process(self, group: Path | None = None, netns: int | None = None) -> Worker:
        """A process in any cgroup of this host, in the network namespace of a process (0: a new one)."""
        made = Worker(group, netns)
        self._workers.append(made)
        return made

    def close(self) -> None:
        """End and remove everything."""
        for worker in self._workers:
            worker.end()
        for group in _inside_out(self.root):
            _empty(group)
            _remove(group)


def group_id(group: Path) -> int:
    """The id of a cgroup: the inode of its directory."""
    return group.stat().st_ino


def _inside_out(root: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(root, topdown=False):
        yield Path(path)


def _empty(group: Path) -> None:
    """Kill what a test's processes left behind: all in here descend from processes we started."""
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _remove(group: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _remove_leftovers(root: Path) -> None:
    """Empty directories of runs that were killed."""
    for path in root.glob(f"{PREFIX}*"):
        if not Path(f"/proc/{path.name.removeprefix(PREFIX)}").exists():
            with contextlib.suppress(OSError):
                for group in _inside_out(path):
                    group.rmdir()
