# SPDX-License-Identifier: MIT
"""The command: its exit statuses, and what it says where it cannot run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.cli import demo_cmd
from kubectl_pacto.cli.demo import preflight
from kubectl_pacto.cli.demo.preflight import Facts
from kubectl_pacto.cli.demo.report import Outcome
from kubectl_pacto.cli.demo.run import Ended
from kubectl_pacto.cli.main import main
from tests.unit.cli.demo.scene import START, play

FIT = Facts("Linux", "6.1.0", True, (1 << 41) - 1, True, (), ("/m",), ("/m",))


def outcome(seconds: int) -> Outcome:
    judge, scene = play(seconds)
    return Outcome(judge, scene, START, {})


def start(monkeypatch: pytest.MonkeyPatch, ended: Ended, *arguments: str, facts: Facts = FIT) -> int:
    calls: list[dict[str, Any]] = []

    def run(mount: str, **options: Any) -> Ended:
        assert mount == "/m"
        calls.append(options)
        return ended

    monkeypatch.setattr(preflight, "read_facts", lambda: facts)
    monkeypatch.setattr(demo_cmd, "run", run)
    return main(["demo", *arguments])


def test_all_findings_seen_is_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(monkeypatch, Ended(outcome(12), True)) == 0
    assert "INTERFACE_ABSENT" in capsys.readouterr().out


def test_something_missing_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(monkeypatch, Ended(outcome(3), True), "--timeout", "3s") == 1
    assert "Not seen" in capsys.readouterr().out


def test_something_left_behind_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, Ended(outcome(12), False)) == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_ends_as_a_shell_expects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, status: int
) -> None:
    assert start(monkeypatch, Ended(None, True, number)) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert "everything is removed again" in said.err


def test_the_command_that_judges_kept_objects_again_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert start(monkeypatch, Ended(outcome(12), True), "--keep", str(tmp_path / "a b")) == 0
    said = capsys.readouterr().err
    assert f"kubectl pacto evaluate -f '{tmp_path / 'a b'}' --at 2026-" in said
    assert "--stabilization-window 5s --staleness 5s" in said


def test_where_it_cannot_run_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = Facts("Linux", "6.1.0", command="kubectl-pacto demo")
    assert start(monkeypatch, Ended(None, True), facts=facts) == 1
    said = capsys.readouterr().err
    assert "BTF" in said
    assert "run: sudo kubectl-pacto demo" in said


def test_a_wrong_option_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, Ended(None, True), "--timeout", "soon") == 2
