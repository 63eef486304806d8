# SPDX-License-Identifier: MIT
"""What the kernel program costs a short connection: `python -m tests.bench.kernel_cost` (root).

The load runs in a network namespace of its own, in turn without and with the program attached, in the
order A B B A so that a drift of the machine cancels out; ratios are medians of the pairs. The time
inside the program is the kernel's own count of it.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pacto_agent.tracer import Tracer, open_tracer
from tests.support.load import Run, load_program, run_load

ROUNDS: Final = 6
CONNECTIONS: Final = 40_000
GOAL_NS: Final = 1000
SYS_BPF: Final = 321
BPF_ENABLE_STATS: Final = 32

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def tracing() -> Iterator[Tracer]:
    """The agent's program attached and read."""
    tracer = open_tracer()
    try:
        tracer.start()
        yield tracer
    finally:
        tracer.close()


@contextmanager
def kernel_statistics() -> Iterator[None]:
    """The kernel counts the time of BPF programs while this is open."""
    attributes = ctypes.create_string_buffer(128)
    descriptor = _libc.syscall(SYS_BPF, BPF_ENABLE_STATS, attributes, len(attributes))
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"BPF_ENABLE_STATS: {os.strerror(number)}")
    try:
        yield
    finally:
        os.close(descriptor)


def program_time() -> tuple[int, int]:
    """(nanoseconds, runs) of the BPF program that this process holds."""
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except OSError:
            continue
        facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if "run_time_ns" in facts and int(facts["run_cnt"]):
            return int(facts["run_time_ns"]), int(facts["run_cnt"])
    return 0, 0


def compare(program: Path, kind: str) -> None:
    """Print the ratios of one kind of connection."""
    without: list[Run] = []
    attached: list[Run] = []
    run_load(program, CONNECTIONS, kind)
    for number in range(ROUNDS):
        for with_program in (False, True) if number % 2 else (True, False):
            if with_program:
                with tracing():
                    attached.append(run_load(program, CONNECTIONS, kind))
            else:
                without.append(run_load(program, CONNECTIONS, kind))
    pairs = list(zip(attached, without, strict=True))
    rate = statistics.median(b.wall_us / a.wall_us for a, b in pairs)
    cpu = statistics.median(a.cpu_us - b.cpu_us for a, b in pairs)
    with kernel_statistics(), tracing() as tracer:
        run_load(program, CONNECTIONS, kind)
        tracer.drain()
        nanoseconds, runs = program_time()
        lost = sum(tracer.lost())
    own = nanoseconds / CONNECTIONS
    base = statistics.median(run.cpu_us for run in without)
    rows = [
        ("connection rate, with / without the program", f"{rate:.3f}"),
        ("load's CPU per connection, with - without", f"{cpu:+.2f} us of {base:.1f}"),
        ("inside the program, by the kernel's count", f"{own:.0f} ns, {runs / CONNECTIONS:.1f} runs"),
        (f"goal of {GOAL_NS} ns per connection", "met" if own <= GOAL_NS else "not met"),
        ("events lost", f"{lost} of {CONNECTIONS}"),
    ]
    print(f"{kind}:")
    for what, value in rows:
        print(f"  {what:44} {value}")


def main() -> int:
    """Run and print; returns 0."""
    with load_program() as program:
        print(f"{ROUNDS} pairs of {CONNECTIONS} connections; {os.uname().release}, {os.cpu_count()} CPUs")
        for kind in ("normal", "refused"):
            compare(program, kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
