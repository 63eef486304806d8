# SPDX-License-Identifier: MIT
"""install, check, status, bundle and uninstall against a real API server (no node: nothing runs there)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.controller.manifests.operator_objects import release_objects
from tests.cluster.live import Live

pytestmark = pytest.mark.cluster
Run = Callable[..., tuple[int, str, str]]
AGENT = {"nodeAgent": {"enabled": True}}


@pytest.fixture
def run(api_server: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the plugin as the cluster's administrator: its status, output and errors."""
    monkeypatch.setenv("KUBECONFIG", str(api_server.provider.kubeconfig))

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(words)
        out, err = capsys.readouterr()
        return status, out, err

    return call


def words_of(out: str) -> set[str]:
    """The last word of each line: what became of an object."""
    return {line.rpartition(" ")[2] for line in out.splitlines()}


def test_an_installation_from_the_first_check_to_the_last_object(run: Run, tmp_path: Path) -> None:
    status, out, err = run("check", "--pre")
    assert status == 0, out + err
    status, out, err = run("install", "--dry-run", "server", "--node-agent")
    assert status == 0, err
    assert len(out.splitlines()) == len(release_objects(AGENT, namespace="n"))
    assert "there is no CRD" in run("status")[2]

    status, out, err = run("install", "--node-agent", "--no-wait")
    assert status == 0, err
    assert words_of(out) == {"created"}
    status, out, err = run("install", "--no-wait", "--diff")
    assert words_of(out) == {"unchanged"}, out
    status, out, err = run("install", "--timeout", "1s")
    assert status == 1
    assert "not ready after 1s: deployment.apps/pacto-operator (0 of 1 ready" in err

    status, out, _ = run("status", "-A", "-o", "json")
    assert status == 0
    assert json.loads(out)["operator"]["namespace"] == "pacto-operator-system"
    status, out, _ = run("check", "-o", "json")
    groups = {one["group"]: one["checks"] for one in json.loads(out)["groups"]}
    assert {one["result"] for one in groups["Resources"]} == {"ok"}
    assert groups["Operator"][0]["result"] == "failed"

    status, out, err = run("upgrade", "--no-node-agent", "--no-wait")
    assert "namespace/pacto-node-agent deleted" in out
    file = tmp_path / "bundle.yaml"
    assert run("bundle", "--to", str(file))[0] == 0
    bundled: list[dict[str, Any]] = list(yaml.safe_load_all(file.read_text()))
    assert "Secret" not in {raw["kind"] for raw in bundled}

    status, out, err = run("uninstall", "--yes", "--delete-crds", "--timeout", "180s")
    assert status == 0, err
    assert "deployment.apps/pacto-operator deleted" in out
    assert run("uninstall", "--yes")[0] == 1


def test_a_value_of_the_servers_own_is_no_conflict_but_a_foreign_one_is(run: Run, api_server: Live) -> None:
    assert run("install", "--no-wait")[0] == 0
    try:
        path = ["deployment", "pacto-operator", "-n", "pacto-operator-system"]
        api_server.kubectl("scale", *path, "--replicas=2")
        status, _, err = run("install", "--no-wait")
        assert status == 1
        assert "--force-conflicts takes these fields over" in err
        assert run("install", "--no-wait", "--force-conflicts")[0] == 0
    finally:
        run("uninstall", "--yes", "--delete-crds")
