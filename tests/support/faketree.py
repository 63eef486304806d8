# SPDX-License-Identifier: MIT
"""/proc and cgroup trees as files, made from a description: what an agent would find on another node.

A description names processes (pid, parent, start, namespace, text of its cgroup file) and the
directories of the cgroup mounts. {a} in a path stands for 64 times the digit a, as container ids are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

FIXTURES: Final = Path(__file__).parents[1] / "fixtures" / "nodes"
STAT: Final = "{pid} ({name}) S {parent} 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0\n"


def filled(text: str) -> str:
    """A path with its container ids written out."""
    return re.sub(r"\{([0-9a-f])\}", lambda match: match[1] * 64, text)


def make_process(proc: Path, pid: int, facts: dict[str, Any]) -> Path:
    """One process's directory; facts: parent, started, netns, cgroup and perhaps name, tcp, tcp6."""
    directory = proc / str(pid)
    (directory / "ns").mkdir(parents=True)
    (directory / "net").mkdir()
    stat = {"pid": pid, "name": "server", "parent": 1, "started": pid, **facts}
    (directory / "stat").write_text(STAT.format_map(stat))
    (directory / "cgroup").write_text("".join(f"{filled(line)}\n" for line in facts["cgroup"]))
    if "netns" in facts:
        (directory / "ns" / "net").symlink_to(f"net:[{facts['netns']}]")
    for table in ("tcp", "tcp6"):
        (directory / "net" / table).write_text(facts.get(table, ""))
    return directory


def make_proc(root: Path, processes: dict[int, dict[str, Any]]) -> Path:
    """A /proc below `root`, with the files that are no process beside them."""
    proc = root / "proc"
    proc.mkdir()
    for name in ("self", "sys", "net", "acpi", "1x"):
        (proc / name).mkdir()
    (proc / "stat").write_text("cpu 0\n")
    for pid, facts in processes.items():
        make_process(proc, pid, facts)
    return proc


def make_cgroups(root: Path, mounts: dict[str, list[str]]) -> Path:
    """A /sys/fs/cgroup below `root`: for each mount ('' is the v2 root itself) its directories."""
    top = root / "cgroup"
    top.mkdir()
    for mount, paths in mounts.items():
        base = top / mount
        base.mkdir(exist_ok=True)
        if mount in ("", "unified"):
            (base / "cgroup.controllers").write_text("")
        for path in paths:
            (base / filled(path).lstrip("/")).mkdir(parents=True)
    return top
