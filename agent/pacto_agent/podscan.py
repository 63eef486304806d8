# SPDX-License-Identifier: MIT
"""Reads what a PodMap is made of: the host's processes and its cgroup tree, both bounded.

Called by the agent's resync. Which pod a path names is cgroups's part, what follows from it podmap's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from pacto_agent.cgroups import PathPod, pod_of_path
from pacto_agent.podmap import PodMap, PodMapBuilder
from pacto_native.procfs import ProcessScan
from pacto_native.rows import ProcessRow

SCAN_BATCH: Final = 256
WALK_DIRECTORIES: Final = 50_000
WALK_DEPTH: Final = 24
POD_DIRECTORIES: Final = 256  # of one pod, where some process of it is asked for
PROCS_BYTES: Final = 4096  # of one list of processes: a few hundred are plenty


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """Where the host's cgroups are mounted: `mode` is v1, hybrid or v2; empty paths: no such tree."""

    mode: str
    v2: str
    v1: str

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return bool(self.v2 or self.v1)


def find_tree(root: str) -> CgroupTree:
    """The cgroup layout under `root` (/sys/fs/cgroup)."""
    if os.path.exists(os.path.join(root, "cgroup.controllers")):
        return CgroupTree("v2", root, "")
    controllers = ("pids", "systemd", "memory", "cpu", "cpuset", "devices", "freezer", "name=systemd")
    v1 = next((found for name in controllers if os.path.isdir(found := os.path.join(root, name))), "")
    unified = os.path.join(root, "unified")
    if os.path.exists(os.path.join(unified, "cgroup.controllers")):
        return CgroupTree("hybrid", unified, v1)
    return CgroupTree("v1", "", v1)


def walk(root: str) -> Iterator[tuple[int, str]]:
    """(inode, path below `root`) of every cgroup but the root; what vanishes meanwhile is left out.

    The inode is the cgroup's id on 64-bit kernels. Stops at the bounds of this module.
    """
    for entry, path, _ in _below(root, lambda _: None):
        with suppress(OSError):
            yield entry.inode(), path


def _pod_directories(root: str) -> Iterator[tuple[str, PathPod]]:
    """(path below `root`, pod) of every pod's own directory; what is inside is not looked at."""
    for _, path, named in _below(root, pod_of_path) if root else ():
        if named:
            yield path, named


def _below(
    root: str, named: Callable[[str], PathPod | None]
) -> Iterator[tuple[os.DirEntry[str], str, PathPod | None]]:
    """Every directory below `root`, its path and whom `named` says it is; nothing below one that is named."""
    pending = [("", 0)]
    seen = 0
    while pending:
        path, depth = pending.pop()
        for entry in _directories(root + path):
            seen += 1
            if seen > WALK_DIRECTORIES:
                return
            below = f"{path}/{entry.name}"
            pod = named(below)
            yield entry, below, pod
            if pod is None and depth + 1 < WALK_DEPTH:
                pending.append((below, depth + 1))


def _directories(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def pod_uids(tree: CgroupTree) -> set[str]:
    """The pods that have a cgroup now: a look at their own directories alone, cheap enough to repeat."""
    return {named.uid for root in (tree.v2, tree.v1) for _, named in _pod_directories(root)}


def add_cgroups(builder: PodMapBuilder, tree: CgroupTree) -> None:
    """Walk both trees into the builder."""
    for root, v2 in ((tree.v2, True), (tree.v1, False)):
        for inode, path in walk(root) if root else ():
            builder.add_cgroup(inode, path, v2=v2)


def pids_of_pods(tree: CgroupTree, uids: Set[str]) -> dict[str, list[int]]:
    """Some processes of each of these pods, numbered as this process's pid namespace has them.

    One look at the tree for all of them; of each pod at most POD_DIRECTORIES are read.
    """
    found: dict[str, set[int]] = {}
    for root in (tree.v2, tree.v1):
        for path, named in _pod_directories(root):
            if named.uid not in uids:
                continue
            inside = (f"{path}{below}" for _, below in walk(root + path))
            for one in islice(chain([path], inside), POD_DIRECTORIES):
                inner = pod_of_path(one)
                if inner is not None and not inner.helper:
                    found.setdefault(named.uid, set()).update(_read_pids(f"{root}{one}/cgroup.procs"))
    return {uid: sorted(pids - {0}) for uid, pids in found.items()}  # 0: outside of this pid namespace


def _read_pids(path: str) -> set[int]:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(PROCS_BYTES)
        whole = text if len(text) < PROCS_BYTES else text.rpartition("\n")[0]
        return {int(word) for word in whole.split()}
    except (OSError, ValueError):
        return set()


def boot_time() -> float:
    """POSIX seconds of the boot, by the clock that processes' starts are counted with."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def read_pods(proc: str, tree: CgroupTree, *, previous: PodMap | None = None, own_uid: str = "") -> PodMap:
    """The map as /proc and the cgroup tree show it now; raises OSError when /proc cannot be listed."""
    builder = PodMapBuilder(own_uid, boot_at=boot_time(), per_second=os.sysconf("SC_CLK_TCK"))
    # cgroups first: a pod made meanwhile then has processes that name it, never an id unknown as outside
    add_cgroups(builder, tree)
    scan = ProcessScan(proc)
    try:
        for row in _rows(scan):
            builder.add_process(row)
    finally:
        scan.close()
    return builder.finish(previous, denied=scan.denied)


def _rows(scan: ProcessScan) -> Iterable[ProcessRow]:
    while rows := scan.batch(SCAN_BATCH):
        yield from rows
