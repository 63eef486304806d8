# SPDX-License-Identifier: MIT
"""The load of the benchmarks: short connections of one pod, in a cgroup and network of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.hosts import v2_root

CLONE_NEWNET: Final = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Run:
    """One run of the load: what a connection took, in microseconds, and the seconds of all."""

    cpu_us: float
    wall_us: float
    seconds: float


@contextmanager
def load_program() -> Iterator[Path]:
    """The load, compiled."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "connections"
        source = Path(__file__).with_name("connections.c")
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
        yield program


def in_new_network() -> None:
    """Move this process into a namespace of its own, with its loopback up."""
    if _libc.unshare(CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def run_load(program: Path, count: int, kind: str, *, rate: int = 0, group: Path | None = None) -> Run:
    """Run it once, at full speed or at a rate, in a cgroup where one is given."""

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))
        in_new_network()

    command = [str(program), str(count), kind, *([str(rate)] if rate else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=enter)
    cpu, wall, _ = (float(word) for word in done.stdout.split())
    return Run(cpu * 1e6 / count, wall * 1e6 / count, wall)


@contextmanager
def pod_group() -> Iterator[tuple[str, Path]]:
    """(UID, cgroup) of a make-believe pod."""
    root = v2_root()
    assert root is not None, "no v2 cgroup hierarchy"
    uid = str(uuid.uuid4())
    top = root / f"pacto-bench-{os.getpid()}"
    group = top / "kubepods" / f"pod{uid}" / (uuid.uuid4().hex * 2)
    group.mkdir(parents=True)
    try:
        yield uid, group
    finally:
        for path in (group, group.parent, group.parent.parent, top):
            with contextlib.suppress(OSError):
                path.rmdir()
