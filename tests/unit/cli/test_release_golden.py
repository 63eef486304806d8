# SPDX-License-Identifier: MIT
"""What install, upgrade and uninstall print, as golden files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from kubectl_pacto.cli.install import wait
from kubectl_pacto.cli.main import main
from kubectl_pacto.controller.manifests import operator_objects
from tests.unit.cli.conftest import Plugin
from tests.unit.cli.test_install import made_of, prepare

Golden = Callable[[str, str], None]
DRY: Final = ("install", "--dry-run", "client")


@pytest.fixture
def cluster(bare: Plugin, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """An empty cluster that can take a small release."""
    monkeypatch.setattr(operator_objects, "release_objects", made_of)
    monkeypatch.setattr(wait, "POLL_SECONDS", 0.01)
    prepare(bare.api)
    return bare


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("install-operator.yaml", ("-o", "yaml")),
        ("install-operator.json", ("-o", "json")),
        ("install-agent.yaml", ("-o", "yaml", "--node-agent", "--enable-probing")),
        ("install-agent.names", ("--node-agent",)),
        (
            "install-values.yaml",
            ("-o", "yaml", "-n", "ours", "--set", "nodeAgent.enabled=true,nodeAgent.mapper=iter",
             "--set", "nodeAgent.nodeSelector.kubernetes\\.io/arch=amd64", "--set", "replicaCount=2"),
        ),
    ],
)  # fmt: skip
def test_install_without_a_cluster(
    name: str, words: Sequence[str], golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DRY, *words]) == 0
    golden(name, capsys.readouterr().out)


def test_the_life_of_a_release(cluster: Plugin, golden: Golden) -> None:
    """From the first dry run to the last object, as one transcript."""
    steps = (
        ("install", "--dry-run", "server", "--node-agent"),
        ("install", "--node-agent"),
        ("install",),
        ("upgrade", "--dry-run", "client", "--set", "replicas=2"),
        ("upgrade", "--dry-run", "server", "--set", "replicas=2"),
        ("upgrade", "--dry-run", "client", "--no-node-agent"),
        ("upgrade", "--set", "replicas=2", "--no-wait"),
        ("upgrade", "--no-node-agent", "--set", "replicas=1"),
        ("uninstall",),
        ("uninstall", "--dry-run"),
        ("uninstall", "--yes", "--delete-crds"),
        ("uninstall", "--yes"),
        ("upgrade",),
    )
    transcript = [f"$ kubectl pacto {' '.join(words)}\n{cluster(*words).text}" for words in steps]
    golden("release", "\n".join(transcript))


def test_an_upgrade_says_from_what_to_what(cluster: Plugin) -> None:
    cluster("install")
    path = "/api/v1/namespaces/pacto-operator-system/configmaps/kubectl-pacto-release"
    raw = cluster.api.objects[path]
    content = {**json.loads(raw["data"]["release"]), "version": "0.0.9"}
    cluster.api.put(path, {**raw, "data": {"release": json.dumps(content)}})
    assert cluster("upgrade").err.startswith("from 0.0.9 to ")
