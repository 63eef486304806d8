# SPDX-License-Identifier: MIT
"""The process that cleans up after the demo, however the demo ends: its only way of cleaning up.

Started before anything is made, with the names of all that will be. It waits for its standard input
to end, which the kernel sees to even when the demo is killed, and then kills and removes.
Signals do not reach it: a terminal's Ctrl-C is for the demo.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubectl_pacto.cli.demo import cgroups

READY: Final = "ready"


def clean(tree: str, directory: str) -> list[str]:
    """Remove a cgroup tree with its processes, then a directory; returns what is left and why."""
    left = [cgroups.remove(Path(tree))] if Path(tree).exists() else []
    if Path(directory).exists():
        shutil.rmtree(directory, onerror=lambda _, path, error: left.append(f"{path}: {error[1]}"))
    return [problem for problem in left if problem]


def sweep(mount: str, directory: str) -> None:
    """Remove what earlier demos left that were killed together with their cleaners."""
    cgroups.sweep(mount)
    for path in Path(directory).glob(f"{cgroups.MARK}*"):
        # the folder of temporary files is everybody's: what another user made there is not ours
        if path.lstat().st_uid == os.geteuid() and path.is_dir() and cgroups.is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _say(line: str) -> None:
    # the demo may be dead already: that is what this process is for
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{line}\n".encode())


def main(arguments: Sequence[str]) -> int:
    """Wait, then clean; returns 1 and prints what is left if anything is."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _say(READY)
    sys.stdin.read()
    left = clean(*arguments)
    for problem in left:
        _say(problem)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
