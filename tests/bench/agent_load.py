# SPDX-License-Identifier: MIT
"""The whole agent under load: `python -m tests.bench.agent_load` (root).

The real process with a file sink that publishes every second: idle, at two steady rates, and at the
machine's full rate, also under a quota of a fifth of a CPU. CPU is the agent's beside the load's.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.churn import MALLOC
from tests.support.load import load_program, pod_group, run_load

STEADY_SECONDS: Final = 10
FULL: Final = int(os.environ.get("PACTO_BENCH_CONNECTIONS", "1000000"))
QUOTA_US, PERIOD_US = 20_000, 100_000


@dataclass
class Agent:
    """A running agent and the file it publishes to."""

    process: subprocess.Popen[bytes]
    output: Path

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return time.clock_gettime(~self.process.pid << 3 | 2)  # clock_getcpuclockid(3), finer than ticks

    def rss_mib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)

    def published(self) -> dict[str, Any]:
        """The node's object; empty before the first."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            found: dict[str, Any] = json.loads(self.output.read_text())["items"][0]
            return found
        return {}

    def connections(self, uid: str) -> int:
        """Connections that the object counts for a pod."""
        peers = [
            peer for pod in self.published().get("pods", []) if pod["uid"] == uid for peer in pod["peers"]
        ]
        return sum(peer["succeeded"] + peer["failed"] + peer["aborted"] for peer in peers)


@contextmanager
def agent(quota: Path | None = None, *, interval: str = "1s") -> Iterator[Agent]:
    """Started and publishing; in a cgroup with a quota where one is given; memory as the DaemonSet has it."""
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "node.json"

        def enter() -> None:
            if quota is not None:
                (quota / "cgroup.procs").write_text(str(os.getpid()))

        command = [sys.executable, "-m", "pacto_agent", "--sink", "file", "--output", str(output)]
        process = subprocess.Popen(
            [*command, "--publish-interval", interval],
            preexec_fn=enter,  # noqa: PLW1509 - no thread runs yet
            env={**os.environ, **MALLOC},
        )
        made = Agent(process, output)
        try:
            deadline = time.monotonic() + 60
            while not made.published():
                assert time.monotonic() < deadline, "the agent does not publish"
                time.sleep(0.1)
            yield made
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def fifth_of_a_cpu() -> Iterator[Path]:
    """A cgroup with the specification's CPU limit, in whichever hierarchy has the controller."""
    v1 = Path("/sys/fs/cgroup/cpu")
    group = (v1 if v1.is_dir() else Path("/sys/fs/cgroup")) / f"pacto-quota-{os.getpid()}"
    group.mkdir()
    try:
        if v1.is_dir():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        else:
            (group / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
        yield group
    finally:
        group.rmdir()


def steady(program: Path) -> None:
    """Idle, then two rates."""
    with agent() as running, pod_group() as (_, group):
        time.sleep(3)
        for rate in (0, 1_000, 10_000):
            before, began = running.cpu(), time.monotonic()
            load_cpu = 0.0
            if rate:
                count = rate * STEADY_SECONDS
                load_cpu = run_load(program, count, "normal", rate=rate, group=group).cpu_us * count / 1e6
            else:
                time.sleep(STEADY_SECONDS)
            seconds = time.monotonic() - began
            spent = running.cpu() - before
            share = f", {spent / load_cpu:.3f} of the load's" if load_cpu else ""
            dropped = running.published()["collection"]["droppedEvents"]
            cost = f"{spent / seconds * 1000:6.1f} millicores{share}"
            print(f"{rate:6} connections/s: {cost}, {dropped} events dropped")
        print(f"resident memory: {running.rss_mib():.1f} MiB")


def full_rate(program: Path, quota: Path | None) -> None:
    """As fast as the machine can, while the agent has all it wants, or a fifth of a CPU."""
    with agent(quota) as running, pod_group() as (uid, group):
        time.sleep(3)
        done = run_load(program, FULL, "normal", group=group)
        time.sleep(4)
        dropped = running.published()["collection"]["droppedEvents"]
        counted = running.connections(uid)
    limit = "without a quota" if quota is None else "under a quota of 200m"
    print(f"{FULL} connections at {FULL / done.seconds:,.0f}/s {limit}: {dropped} dropped, {counted} counted")


def main() -> int:
    """Run and print; returns 0."""
    print(f"{os.uname().release}, {os.cpu_count()} CPUs")
    with load_program() as program:
        steady(program)
        full_rate(program, None)
        with fifth_of_a_cpu() as quota:
            full_rate(program, quota)
    return 0


if __name__ == "__main__":
    sys.exit(main())
