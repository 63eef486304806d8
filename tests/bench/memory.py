# SPDX-License-Identifier: MIT
"""Resident memory of `pacto agent` at its bounds, beside that of a bare Python.

The process that the DaemonSet runs: its command, environment and arguments, with its kernel programs where
they may load (root), and a node of 256 pods and 4,096 peers, resynced and published several times: with
the 4 listeners of a usual pod, and with the 64 of the bound. Python starts as in the image, without
what this checkout's environment adds to it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, Final

from kubectl_pacto.controller.manifests.agent_objects import daemon_set
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from tests.support.fake_api import FakeApi
from tests.support.sources import with_sources
from tests.support.tls_api import authority, serve_tls

GOAL_MIB: Final = 32
RUNS: Final = 3
LISTENERS: Final = (4, 64)
PYTHON: Final = (getattr(sys, "_base_executable", sys.executable), "-S")
BARE: Final = """
import json, site
words = [line.split() for line in open("/proc/self/status") if line.startswith("VmRSS")]
print(json.dumps({"now": int(words[0][1])}))
"""


def container() -> dict[str, Any]:
    """The agent's container."""
    (found,) = daemon_set(NodeAgentValues())["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def environment(port: str) -> dict[str, str]:
    """The container's, in a pod of a cluster whose API is at this port."""
    held = {one["name"]: one.get("value", "bench") for one in container()["env"]}
    packages = sysconfig.get_path("purelib")
    path = f"{with_sources()['PYTHONPATH']}{os.pathsep}{packages}"
    pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port, "PYTHONPATH": path}
    return {**os.environ, **held, **pod, "POD_UID": ""}


def arguments(sink: str, output: str) -> list[str]:
    """The container's, where the node's cgroups are this machine's; or to a file."""
    given = [one.replace("/host/cgroup", "/sys/fs/cgroup") for one in container()["args"]]
    at = given.index("--sink") + 1
    return given if given[at] == sink else [*given[:at], sink, "--output", output, *given[at + 1 :]]


def run(given: dict[str, str], *command: str) -> dict[str, int]:
    """The figures that a Python process printed."""
    done = subprocess.run([*PYTHON, *command], check=True, capture_output=True, text=True, env=given)
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def account(folder: Path) -> Path:
    """A service account's folder."""
    made = folder / "account"
    made.mkdir()
    shutil.copy(authority().certificate, made / "ca.crt")
    (made / "token").write_text("token")
    return made


def main() -> None:
    """Measure a few times and print medians."""
    with tempfile.TemporaryDirectory() as directory, serve_tls(FakeApi()) as url:
        given = environment(url.rpartition(":")[2])
        bare = statistics.median(run(given, "-c", BARE)["now"] for _ in range(RUNS)) / 1024
        print(f"bare Python: {bare:.1f} MiB resident; goal of the agent: {GOAL_MIB} MiB")
        where = str(account(Path(directory)))
        for sink in ("file", "kubernetes"):
            for listeners in LISTENERS:
                called = arguments(sink, f"{directory}/view.json")
                measured = ("-m", "tests.bench._memory_agent", str(listeners), where, *called)
                report(sink, [run(given, *measured) for _ in range(RUNS)], bare)


def report(sink: str, agents: list[dict[str, int]], bare: float) -> None:
    """A few lines about runs of one kind."""
    now, peak, own = (
        statistics.median(agent[key] for agent in agents) / 1024 for key in ("now", "peak", "own")
    )
    last = agents[-1]
    kernel = "" if last["loaded"] else " WITHOUT its kernel program (run as root)"
    print(
        f"--sink {sink}{kernel}, {last['pods']} pods, {last['listeners']} listeners, {last['peers']} peers, "
        f"{last['bytes']} bytes published: {now:.1f} MiB, {own:.1f} of them its own, peak {peak:.1f}; "
        f"{now / bare:.2f} times bare Python"
    )


if __name__ == "__main__":
    main()
