# SPDX-License-Identifier: MIT
"""The cgroups of a node, on hosts with cgroup v1, hybrid and pure v2 hierarchies."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.process import wait_until

ROOT: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Hierarchy:
    """One mounted hierarchy: where, of which type, with which mount options (v1: its controllers)."""

    path: Path
    kind: str
    options: str

    @property
    def unified(self) -> bool:
        """Whether this is the v2 tree."""
        return self.kind == "cgroup2"


def hierarchies() -> list[Hierarchy]:
    """What is mounted at and below /sys/fs/cgroup."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, target, kind, options, *_ = line.split()
        if kind in ("cgroup", "cgroup2") and Path(target).is_relative_to(ROOT):
            found.append(Hierarchy(Path(target), kind, _controllers(options)))
    return found


def _controllers(options: str) -> str:
    """A v1 hierarchy's controllers or name, without the options every mount has."""
    common = {
        "rw",
        "ro",
        "relatime",
        "nosuid",
        "nodev",
        "noexec",
        "noatime",
        "nsdelegate",
        "memory_recursiveprot",
        "xattr",
    }
    wanted = [
        option for option in options.split(",") if option not in common and "release_agent" not in option
    ]
    return ",".join((["none"] if any(option.startswith("name=") for option in wanted) else []) + wanted)


def create(name: str) -> list[Path]:
    """The node's group in each hierarchy; the files that a process writes itself into to join."""
    joins = []
    for hierarchy in hierarchies():
        group = hierarchy.path / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # v1: a new cpuset is empty and takes no process; v2 inherits
            if not hierarchy.unified and (group / setting).exists():
                (group / setting).write_text((hierarchy.path / setting).read_text())
        if hierarchy.unified and hierarchy.path == ROOT:
            delegate(hierarchy.path)
        joins.append(group / "cgroup.procs")
    return joins


def delegate(group: Path) -> None:
    """v2: let the groups below have every controller that this one has."""
    for controller in (group / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def of_cluster(prefix: str) -> list[Path]:
    """Every group of a cluster's nodes that is left in any hierarchy."""
    found = []
    for hierarchy in hierarchies():
        found += [path for path in hierarchy.path.glob(f"{prefix}_*") if path.is_dir()]
    return found


def remove(group: Path) -> bool:
    """Remove a group and those below it; the kernel lets go of ended processes a little later."""

    def removed() -> bool:
        for path in sorted(group.rglob("*/"), key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    return wait_until(removed, 10)
