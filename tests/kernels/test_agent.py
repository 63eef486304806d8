# SPDX-License-Identifier: MIT
"""The agent on Debian's kernels: one object for the same traffic, and a reason where it cannot load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.layout import REPOSITORY
from tests.images import runtime
from tests.kernels import debian, machine, tier
from tests.kernels.machine import Machine
from tests.support.require import require, require_root
from tests.support.sources import with_sources

pytestmark = pytest.mark.kernels
LIMIT = 600  # seconds: each takes one minute with the machine for itself
# until it has renewed its Lease, at most three minutes: an emulator may be slow
AGENT = """\
agent() {
    pacto agent --sink stdout --node-name n --publish-interval 1s "$@" >/tmp/said 2>&1 & left=180
    until [ "$(grep -c '"kind":"Lease"' /tmp/said)" -ge 2 ] || [ $left = 0 ]; do
        sleep 1; left=$((left - 1))
    done
    kill $!; wait $!; echo "ended: $?" >>/tmp/said; cat /tmp/said
}
"""


@pytest.fixture(scope="module")
def root() -> Path:
    """The runtime image's root."""
    require("kernels", machine.missing())
    return runtime.directory()


@pytest.fixture(scope="module")
def expected() -> Any:
    """What the machine's own kernel says of the scripted traffic."""
    require_root("kernels")
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.scenario"],
        cwd=REPOSITORY,
        env=with_sources(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def collections(output: str) -> list[dict[str, Any]]:
    """The state of collection of each node object among the lines."""
    objects = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [one["collection"] for one in objects if one["kind"] == "NodeRuntimeObservation"]


def test_the_machines_own_kernel_sees_all_of_the_traffic(expected: Any) -> None:
    """What the others are compared with is right."""
    pods = expected["pods"]
    assert expected["state"] == "Running"
    assert all(pod["complete"] for pod in pods.values())
    assert pods["early"]["listeners"] == ["0.0.0.0 7070"]
    assert pods["late"]["listeners"] == ["0.0.0.0 8080", "::1 8443"]
    assert pods["silent"]["listeners"] == []
    counts = {(peer["port"], peer["succeeded"], peer["failed"]) for peer in pods["late"]["peers"]}
    assert counts == {(9, 0, 3), (8080, 7, 0), (8443, 5, 0)}


@pytest.mark.parametrize("suite", debian.SUITES)
def test_every_kernel_gives_the_same_object(suite: str, root: Path, expected: Any) -> None:
    """5.10, 6.1, 6.12 and the machine's own, for the same scripted traffic."""
    made = Machine(suite, root, cwd="/src", add={"/src/tests": REPOSITORY / "tests"}, timeout=LIMIT)
    result = machine.run(made, ["python3", "-m", "tests.kernels.scenario"])
    assert result.status == 0, result.output
    assert json.loads(result.output) == expected
    print(f"{debian.SUITES[suite]}: {result.seconds:.0f} s")


@pytest.mark.parametrize("suite", debian.SUITES)
def test_lockdown_does_not_stop_the_agent(suite: str, root: Path, expected: Any) -> None:
    """Confidentiality forbids probe reads; the program needs none since 5.15, and goes without before."""
    made = Machine(suite, root, lockdown="confidentiality", cwd="/src", add=tier.SOURCES, timeout=LIMIT)
    words = "cat /sys/kernel/security/lockdown >&2; exec python3 -m tests.kernels.scenario"
    result = machine.run(made, ["sh", "-c", words])
    assert result.status == 0, result.output
    mode, _, told = result.output.partition("\n")
    assert "[confidentiality]" in mode
    assert json.loads(told) == expected


def test_a_kernel_without_btf_makes_the_node_failed_with_what_to_do(root: Path) -> None:
    """The object says so to the operator, `inspect` to who looks at the node, and the agent goes on."""
    command = f"{AGENT} agent; pacto agent inspect; echo inspected: $?"
    result = machine.run(Machine("bookworm", root, btf=False, timeout=LIMIT), ["sh", "-c", command])
    (collection,) = collections(result.output)
    assert (collection["state"], collection["reason"]) == ("Failed", "LoadFailed")
    assert "No type information (BTF) at /sys/kernel/btf/vmlinux" in collection["message"]
    assert "Use a kernel built with CONFIG_DEBUG_INFO_BTF=y" in collection["message"]
    assert result.output.count('"kind":"Lease"') > 1
    assert "ended: 0\n" in result.output
    assert "-> use a kernel built with CONFIG_DEBUG_INFO_BTF=y" in result.output
    assert "inspected: 1\n" in result.output
    assert "Traceback" not in result.output


def test_a_kernel_without_the_iterators_says_which_mapper_it_takes_and_how_to_choose(root: Path) -> None:
    """5.10: auto takes proc and the node runs; iter, asked for by name, is Failed and names the remedy."""
    command = f"{AGENT} agent --mapper auto; agent --mapper iter; pacto agent inspect"
    result = machine.run(Machine("bullseye", root, timeout=LIMIT), ["sh", "-c", command])
    auto, by_name = collections(result.output)
    assert auto["state"] == "Running"
    assert result.output.count("pacto agent: mapper proc, for iter does not load: ") == 1
    assert (by_name["state"], by_name["reason"]) == ("Failed", "LoadFailed")
    assert "Linux 5.11 has: choose --mapper auto or proc" in by_name["message"]
    # the verifier's own words end a log of kilobytes
    assert "invalid func unknown#162" in by_name["message"]
    assert "mapper             proc: this kernel has no task_file iterator (5.11)" in result.output
    assert "error" not in {line.partition(" ")[0] for line in result.output.splitlines()}
