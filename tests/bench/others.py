# SPDX-License-Identifier: MIT
"""What other tracers cost a short connection, beside ours: `python -m tests.bench.others` (root).

bpftrace on the same tracepoint, for the same two outcomes of a connection: once counting in a map, once
with a line for each event, which is how a callback per event works. Left out where it is not installed.
Pairs of runs without and with, in the order A B B A; figures are medians of the pairs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from tests.bench.kernel_cost import tracing
from tests.support.agents import bpf_objects
from tests.support.hosts import until
from tests.support.load import Run, load_program, run_load

ROUNDS: Final = 6
CONNECTIONS: Final = 40_000
TICKS: Final = os.sysconf("SC_CLK_TCK")
# TCP's SYN_SENT to ESTABLISHED or CLOSE
PROBE: Final = """tracepoint:sock:inet_sock_set_state
/args->protocol == 6 && args->oldstate == 2 && (args->newstate == 1 || args->newstate == 7)/
"""
COUNTING: Final = PROBE + "{ @[cgroup, ntop(args->daddr), args->dport, args->newstate] = count(); }"
TELLING: Final = (
    PROBE + r'{ printf("%d %s %d %d\n", cgroup, ntop(args->daddr), args->dport, args->newstate); }'
)
# a line for each, or an entry of the map with its count
EVENT: Final = re.compile(r"^(?:\d+ \S+ \d+ \d+|@\[.*\]: (\d+))$", re.MULTILINE)
# the tracepoint is found through tracefs, which not every machine mounts
START: Final = (
    "test -e /sys/kernel/tracing/events || mount -t tracefs none /sys/kernel/tracing; exec bpftrace -e"
)


@dataclass
class Traced:
    """A tracer that is attached: its CPU so far, and once it is not, how many events it told."""

    spent: Callable[[], float]
    told: int = 0


Tracing: TypeAlias = AbstractContextManager[Traced]


@contextmanager
def ours() -> Iterator[Traced]:
    """The agent's program and its reader, in this process."""
    with tracing() as tracer:
        made = Traced(time.process_time)
        yield made
        tracer.drain()
        made.told = sum(one.succeeded + one.failed for sums in tracer.take()[1] for one in sums)


@contextmanager
def bpftrace(script: str) -> Iterator[Traced]:
    """bpftrace with a script, in a mount namespace of its own."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f'{START} "$0"', script],
            stdout=output,
            stderr=subprocess.DEVNULL,
        )

        def spent() -> float:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS

        made = Traced(spent)
        try:
            until(
                lambda: any(what == "prog_id" for what, _ in bpf_objects(process.pid)), "bpftrace's program"
            )
            time.sleep(1)  # loaded: it attaches next
            yield made
        finally:
            process.send_signal(signal.SIGINT)  # it prints its maps at the end
            process.wait(60)
        output.seek(0)
        made.told = sum(int(number or 1) for number in EVENT.findall(output.read()))


def measure(program: Path, kind: str, tracer: Callable[[], Tracing]) -> str:
    """One row: the rate's ratio, the load's CPU and the tracer's own per connection."""
    rates, extra, own, told = [], [], [], []
    for number in range(ROUNDS):
        runs: dict[bool, Run] = {}
        for traced in (False, True) if number % 2 else (True, False):
            if not traced:
                runs[False] = run_load(program, CONNECTIONS, kind)
                continue
            with tracer() as traced_by:
                before = traced_by.spent()
                runs[True] = run_load(program, CONNECTIONS, kind)
                own.append((traced_by.spent() - before) * 1e6 / CONNECTIONS)
            told.append(min(1.0, traced_by.told / CONNECTIONS))
        rates.append(runs[False].wall_us / runs[True].wall_us)
        extra.append(runs[True].cpu_us - runs[False].cpu_us)
    rate, load, self = (statistics.median(one) for one in (rates, extra, own))
    return f"{rate:10.3f} {load:+13.2f} us {self:11.2f} us {statistics.median(told):12.1%}"


def main() -> int:
    """Run and print; returns 0."""
    tracers: dict[str, Callable[[], Tracing]] = {"the agent's program": ours}
    if shutil.which("bpftrace"):
        tracers["bpftrace, counting"] = lambda: bpftrace(COUNTING)
        tracers["bpftrace, a line for each"] = lambda: bpftrace(TELLING)
    else:
        print("bpftrace is not installed: it is left out")
    print(f"{ROUNDS} pairs of {CONNECTIONS} connections; {os.uname().release}, {os.cpu_count()} CPUs")
    print(f"{'per connection':36}   rate, *    load's CPU, *      own CPU  events told")
    with load_program() as program:
        for kind in ("normal", "refused"):
            run_load(program, CONNECTIONS, kind)
            for name, tracer in tracers.items():
                print(f"{kind + ', ' + name:36} {measure(program, kind, tracer)}", flush=True)
    print("* with / without, and with - without")
    return 0


if __name__ == "__main__":
    sys.exit(main())
