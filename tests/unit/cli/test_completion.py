# SPDX-License-Identifier: MIT
"""Completion in kubectl's protocol: candidates, descriptions, a directive, and never an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_pacto.cli.main import COMMANDS, main
from tests.unit.cli.conftest import Plugin


def complete(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """The candidates without their descriptions, and the directive."""
    capsys.readouterr()
    assert main(["__complete", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    *found, directive = out.splitlines()
    return [line.partition("\t")[0] for line in found], directive


def test_commands_come_with_their_help(capsys: pytest.CaptureFixture[str]) -> None:
    found, directive = complete(capsys, "")
    assert set(found) == set(COMMANDS)
    assert directive == ":4"
    assert complete(capsys, "cov")[0] == ["coverage"]
    main(["__complete", "cov"])
    assert capsys.readouterr().out.startswith("coverage\tHow much of each node")


def test_flags_and_their_closed_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--all-namespaces" in complete(capsys, "status", "--")[0]
    assert complete(capsys, "status", "-o", "")[0] == ["table", "wide", "json", "yaml", "name"]
    assert complete(capsys, "findings", "--severity", "e")[0] == ["error"]
    assert complete(capsys, "findings", "--code", "INTERFACE_A")[0] == ["INTERFACE_ABSENT"]
    assert complete(capsys, "explain", "DEPENDENCY_UND")[0] == ["DEPENDENCY_UNDECLARED"]
    assert complete(capsys, "explain", "Heart")[0] == ["HeartbeatTooOld"]


def test_files_are_left_to_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(capsys, "evaluate", "-f", "") == ([], ":0")
    assert complete(capsys, "status", "--kubeconfig", "") == ([], ":0")


def test_names_come_from_the_cluster(plugin: Plugin, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--server", plugin.url]
    assert complete(capsys, "coverage", *at, "--node", "node-")[0] == [f"node-{letter}" for letter in "abcde"]
    assert complete(capsys, "status", *at, "-n", "shop", "")[0] == ["inventory", "orders", "payments"]
    assert complete(capsys, "coverage", *at, "--namespace=ops", "--pod", "")[0] == ["ledger-0"]


def test_contexts_come_from_the_kubeconfig(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    path.write_text("contexts: [{name: kind-a, context: {}}, {name: kind-b, context: {}}]\n")
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert complete(capsys, "status", "--context", "kind-")[0] == ["kind-a", "kind-b"]


@pytest.mark.parametrize("words", [("nope", ""), ("status", "--server", "http://127.0.0.1:1", ""), ()])
def test_what_cannot_be_completed_offers_nothing(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    found, directive = complete(capsys, *words)
    assert directive in (":4", ":0")
    assert not found or not words


def test_the_script_is_printed_or_installed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["completion"])
    printed = capsys.readouterr().out
    assert main(["completion", "--install", str(tmp_path)]) == 0
    script = tmp_path / "kubectl_complete-pacto"
    assert script.read_text() == printed
    assert script.stat().st_mode & 0o111
    assert 'exec kubectl pacto __complete "$@"' in printed


def test_the_folder_is_the_first_of_path_that_can_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"/nonexistent:{tmp_path}")
    assert main(["completion", "--install"]) == 0
    assert (tmp_path / "kubectl_complete-pacto").exists()
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["completion", "--install"]) == 1
