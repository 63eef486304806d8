# SPDX-License-Identifier: MIT
"""Resident memory of `pacto agent` at its bounds, beside that of a bare Python.

The real agent of this installation, with its kernel program where it may load (root), its sink to a
file or to an API over TLS, and a node of 256 pods and 4,096 peers, resynced and published several times:
with the 4 listeners of a usual pod, and with the 64 of the bound.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Final

from tests.bench.churn import MALLOC
from tests.support.fake_api import FakeApi
from tests.support.tls_api import authority, serve_tls

GOAL_MIB: Final = 32
RUNS: Final = 3
LISTENERS: Final = (4, 64)
BARE: Final = """
import json
words = [line.split() for line in open("/proc/self/status") if line.startswith("VmRSS")]
print(json.dumps({"now": int(words[0][1])}))
"""


def run(*command: str) -> dict[str, int]:
    """The figures that a Python process printed, its allocator set as the DaemonSet sets it."""
    done = subprocess.run(
        [sys.executable, *command], check=True, capture_output=True, text=True, env={**os.environ, **MALLOC}
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def main() -> None:
    """Measure a few times and print medians."""
    bare = statistics.median(run("-c", BARE)["now"] for _ in range(RUNS)) / 1024
    print(f"bare Python: {bare:.1f} MiB resident; goal of the agent: {GOAL_MIB} MiB")
    api = FakeApi()
    with tempfile.TemporaryDirectory() as directory, serve_tls(api) as url:
        output, port = f"{directory}/view.json", url.rpartition(":")[2]
        for sink, number in (("file", "0"), ("kubernetes", port)):
            for listeners in LISTENERS:
                arguments = (output, str(listeners), number, str(authority().certificate))
                agents = [run("-m", "tests.bench._memory_agent", *arguments) for _ in range(RUNS)]
                report(sink, agents, bare)


def report(sink: str, agents: list[dict[str, int]], bare: float) -> None:
    """One line about runs of one kind."""
    now, peak = (statistics.median(agent[key] for agent in agents) / 1024 for key in ("now", "peak"))
    last = agents[-1]
    kernel = "" if last["loaded"] else " WITHOUT its kernel program (run as root)"
    print(
        f"--sink {sink}{kernel}, {last['pods']} pods, {last['listeners']} listeners, {last['peers']} peers, "
        f"{last['bytes']} bytes published: {now:.1f} MiB, peak {peak:.1f}; {now / bare:.2f} times bare Python"
    )


if __name__ == "__main__":
    main()
