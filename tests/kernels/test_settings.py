# SPDX-License-Identifier: MIT
"""Settings of a host that have stopped other tools: each in a kernel of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.layout import REPOSITORY
from tests.images import runtime
from tests.kernels import machine
from tests.kernels.machine import Machine
from tests.support.require import require

pytestmark = pytest.mark.kernels
SOURCES = {"/src/tests": REPOSITORY / "tests"}
AGENT = "timeout 300 pacto agent --sink stdout --publish-interval 1s --node-name n"
# the capabilities of the DaemonSet and no other
CONFINED = "setpriv --bounding-set=-all,+bpf,+perfmon,+sys_ptrace --inh-caps=-all"


@pytest.fixture(scope="module")
def root() -> Path:
    """The runtime image's root."""
    require("kernels", machine.missing())
    return runtime.directory()


def run(suite: str, root: Path, script: str) -> str:
    """What a shell script prints under a suite's kernel."""
    made = Machine(suite, root, cwd="/src", add=SOURCES, timeout=600)
    return machine.run(made, ["sh", "-c", script]).output


def objects(output: str) -> list[dict[str, Any]]:
    """The node objects that the agent printed, one a line."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [one for one in lines if one["kind"] == "NodeRuntimeObservation"]


def test_before_5_11_a_small_memlock_limit_is_named(root: Path) -> None:
    """64 KiB and no right to raise them: what was not enough, and what to set."""
    confined = CONFINED.replace("setpriv", "prlimit --memlock=65536:65536 setpriv")
    output = run("bullseye", root, f"{confined} {AGENT} | head -1")
    (first, *_) = objects(output)
    assert (first["collection"]["state"], first["collection"]["reason"]) == ("Failed", "LoadFailed"), output
    assert "memlock: " in first["collection"]["message"]
    assert "nodeAgent.sysResource" in first["collection"]["message"]


def test_before_5_15_net_prio_takes_the_sockets_cgroups_and_namespaces_name_the_pods(root: Path) -> None:
    """Once net_prio was used a socket holds a number where its cgroup was: unknown, never a wrong pod."""
    use = (
        "mkdir /tmp/prio && mount -t cgroup -o net_prio none /tmp/prio && mkdir /tmp/prio/a "
        "&& echo 'lo 5' > /tmp/prio/a/net_prio.ifpriomap && echo used; "
    )
    output = run("bullseye", root, f"{use} python3 -m tests.kernels.scenario")
    assert output.split()[0] == "used", output
    found = json.loads(output.partition("used")[2])
    assert found["state"] == "Running"
    assert all(pod["complete"] for pod in found["pods"].values())
    listeners = {name: pod["listeners"] for name, pod in found["pods"].items()}
    assert listeners == {"early": ["0.0.0.0 7070"], "late": ["0.0.0.0 8080", "::1 8443"], "silent": []}
    peers = {(one["port"], one["succeeded"], one["failed"]) for one in found["pods"]["late"]["peers"]}
    assert peers == {(9, 0, 3), (8080, 7, 0), (8443, 5, 0)}
