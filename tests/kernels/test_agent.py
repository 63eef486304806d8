# SPDX-License-Identifier: MIT
"""The agent on Debian's kernels: one object for the same traffic, and a reason where it cannot load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.layout import REPOSITORY
from tests.images import runtime
from tests.kernels import debian, machine
from tests.kernels.machine import Machine
from tests.support.require import require, require_root

pytestmark = pytest.mark.kernels
SOURCES = {"/src/tests": REPOSITORY / "tests", "/src/pyproject.toml": REPOSITORY / "pyproject.toml"}
# What of the kernel tier says something about a kernel rather than about the agent, and is quick.
QUICK = ("tests/kernel/test_listeners.py",)
FULL = (
    *QUICK,
    "tests/kernel/test_connections.py",
    "tests/kernel/test_mappers.py",
    "tests/kernel/test_agent_listeners.py",
)


@pytest.fixture(scope="module")
def root() -> Path:
    """The runtime image's root."""
    require("kernels", machine.missing())
    return runtime.directory()


@pytest.fixture(scope="module")
def expected() -> Any:
    """What the machine's own kernel says of the scripted traffic."""
    require_root("kernels")
    paths = os.pathsep.join(str(REPOSITORY / name) for name in ("", "agent", "ext"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.scenario"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
    made = Machine(suite, root, cwd="/src", add={"/src/tests": REPOSITORY / "tests"}, timeout=240)
    result = machine.run(made, ["python3", "-m", "tests.kernels.scenario"])
    assert result.status == 0, result.output
    assert json.loads(result.output) == expected
    print(f"{debian.SUITES[suite]}: {result.seconds:.0f} s")


def test_lockdown_does_not_stop_the_agent(root: Path, expected: Any) -> None:
    """Confidentiality forbids probe reads; the program uses none."""
    made = Machine("trixie", root, lockdown="confidentiality", cwd="/src", add=SOURCES, timeout=240)
    result = machine.run(made, ["python3", "-m", "tests.kernels.scenario"])
    assert result.status == 0, result.output
    assert json.loads(result.output) == expected


def test_a_kernel_without_btf_is_named(root: Path) -> None:
    """The object says LoadFailed and that BTF is missing."""
    command = "timeout 20 pacto agent --sink stdout --publish-interval 1s; true"
    result = machine.run(Machine("bookworm", root, btf=False, timeout=120), ["sh", "-c", command])
    assert "LoadFailed" in result.output
    assert "BTF" in result.output


@pytest.mark.parametrize("suite", debian.SUITES)
def test_the_kernel_tier_holds_there_too(suite: str) -> None:
    """The kernel tests that any kernel must pass; all of them with PACTO_KERNELS=full."""
    require("kernels", machine.missing())
    full = os.environ.get("PACTO_KERNELS") == "full"
    with_pytest = runtime.directory(("pytest", "hypothesis"))
    made = Machine(suite, with_pytest, cwd="/src", add=SOURCES, timeout=1200 if full else 400)
    chosen = FULL if full else QUICK
    result = machine.run(
        made, ["python3", "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", *chosen]
    )
    print(f"{debian.SUITES[suite]}: {result.seconds:.0f} s, {result.output.strip().splitlines()[-1]}")
    assert result.status == 0, result.output
