# SPDX-License-Identifier: MIT
"""Kubelet-style cgroups for the demo's pods, in a tree of their own, and the end of that tree.

A pod is named by a cgroup path such as kubepods/burstable/pod<uid>/<container id>. The demo's lie below
one directory, never in the node's own kubepods: a kubelet removes what it does not know there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MARK: Final = "pacto-demo-"
KILL_SECONDS: Final = 5.0
ROOT: Final = "/sys/fs/cgroup"
# the order in which the agent looks for one; cpuset is left out, it needs settings before a process may enter
V1_CONTROLLERS: Final = ("pids", "name=systemd", "memory", "cpu", "devices", "freezer")


def hierarchies(mounts: str) -> list[str]:
    """The cgroup mounts in the text of /proc/mounts that the demo can use, the best first.

    The v2 tree names a socket's creator to the kernel; a v1 hierarchy names processes alone, which
    is enough. The agent looks below /sys/fs/cgroup only.
    """
    rows = [fields for line in mounts.splitlines() if len(fields := line.split()) > 3]
    rows = [fields for fields in rows if fields[1] == ROOT or fields[1].startswith(f"{ROOT}/")]
    v2 = [fields[1] for fields in rows if fields[2] == "cgroup2"]
    v1 = [
        fields[1]
        for name in V1_CONTROLLERS
        for fields in rows
        if fields[2] == "cgroup" and name in fields[3].split(",")
    ]
    return list(dict.fromkeys(v2 + v1))


def is_writable(root: str) -> bool:
    """Whether directories can be made in this mount."""
    try:
        return os.access(root, os.W_OK) and not os.statvfs(root).f_flag & os.ST_RDONLY
    except OSError:
        return False


def pod_directory(tree: str, uid: str, container: str) -> Path:
    """Where the processes of a pod's container belong."""
    return Path(tree, "kubepods", "burstable", f"pod{uid}", container)


def enter(directory: str | Path) -> None:
    """Move this process into a cgroup; raises OSError that names it."""
    path = Path(directory, "cgroup.procs")
    try:
        path.write_text("0\n", encoding="ascii")
    except OSError as error:
        raise OSError(error.errno, f"enter {path}: {error.strerror}") from error


def kill_all(tree: Path) -> bool:
    """Kill whatever is in the tree; whether it is empty now."""
    deadline = time.monotonic() + KILL_SECONDS
    while pids := _pids(tree):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def remove(tree: Path) -> str:
    """End the tree with all that is in it; returns what could not be removed and why, else nothing."""
    if not kill_all(tree):
        return f"{tree}: processes {_pids(tree)} do not end"
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        try:
            for directory in _deepest_first(tree):
                directory.rmdir()
        except OSError as error:
            # a process that was killed leaves its cgroup a moment later
            if time.monotonic() > deadline:
                return f"{error.filename}: {error.strerror}"
            kill_all(tree)
            time.sleep(0.02)
        else:
            return ""


def is_abandoned(path: Path) -> bool:
    """Whether the demo that made this, by its name, is gone."""
    owner = path.name.removeprefix(MARK).partition("-")[0]
    return not Path("/proc", owner).exists()


def sweep(root: str) -> None:
    """Remove what an earlier demo left that was killed together with its cleaner."""
    for tree in Path(root).glob(f"{MARK}*"):
        if is_abandoned(tree) and not _pids(tree):
            remove(tree)


def _deepest_first(tree: Path) -> list[Path]:
    return [Path(path) for path, _, _ in os.walk(tree, topdown=False)]


def _pids(tree: Path) -> list[int]:
    return list(_each_pid(tree))


def _each_pid(tree: Path) -> Iterator[int]:
    for directory in _deepest_first(tree):
        with contextlib.suppress(OSError):
            yield from map(int, (directory / "cgroup.procs").read_text(encoding="ascii").split())
