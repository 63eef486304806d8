# SPDX-License-Identifier: MIT
"""Processes are known by pid and start time, and nothing else is ever ended."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.process import Process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process to end."""
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


def found(pid: int) -> Process:
    """The process of this pid, which must be there."""
    process = Process.of(pid)
    assert process is not None
    return process


def test_a_recorded_process_is_ended(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The way there and back through a pid file."""
    found(sleeper.pid).write(tmp_path / "pid")
    recorded = Process.read(tmp_path / "pid")
    assert recorded is not None
    assert recorded.alive
    recorded.kill()
    assert not recorded.alive


def test_a_successor_of_the_same_number_is_spared(sleeper: subprocess.Popen[bytes]) -> None:
    """A record of an earlier process with this pid."""
    before = Process(sleeper.pid, found(sleeper.pid).started - 1)
    assert not before.alive
    before.kill()
    assert found(sleeper.pid).alive


@pytest.mark.parametrize("text", ["", "12", "12 ", "\n"])
def test_a_pid_file_cut_short_names_nobody(text: str, tmp_path: Path) -> None:
    """What an interruption while writing leaves."""
    path = tmp_path / "pid"
    path.write_text(text)
    assert Process.read(path) is None


def test_no_pid_file_names_nobody(tmp_path: Path) -> None:
    """Never started."""
    assert Process.read(tmp_path / "pid") is None


def test_a_pid_that_nobody_has_is_no_process() -> None:
    """Beyond the largest pid."""
    assert Process.of(2**22 + 1) is None
    Process(2**22 + 1, 1).kill()
