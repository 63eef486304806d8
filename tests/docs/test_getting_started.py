# SPDX-License-Identifier: MIT
"""The Pactos that a newcomer applies do what the page says, where the cluster has what it asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from tests.support.blocks import blocks
from tests.support.sources import ROOT

PAGE = "docs/getting-started.md"


def applied() -> list[dict[str, Any]]:
    """The objects that the page writes into a file."""
    (block,) = (one for one in blocks(PAGE) if one.source.startswith("cat > shop.yaml"))
    text = block.source.partition("<<'END'\n")[2].partition("\nEND\n")[0]
    return list(yaml.safe_load_all(text))


def service(name: str, port: str) -> list[dict[str, Any]]:
    """A Service of one named port with one ready endpoint."""
    metadata = {"name": name, "namespace": "shop"}
    ports = [{"name": port, "port": 80, "targetPort": 8080}]
    endpoint = {
        "addresses": ["10.0.0.1"],
        "conditions": {"ready": True},
        "targetRef": {"kind": "Pod", "namespace": "shop", "name": f"{name}-0", "uid": name},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": name}, "clusterIP": "10.96.0.1", "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": port, "port": 8080, "protocol": "TCP"}],
            "endpoints": [endpoint],
        },
    ]


def cluster() -> list[dict[str, Any]]:
    """What the page takes for granted."""
    kinds = {"shop": "Deployment", "db": "StatefulSet"}
    workloads = [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"spec": {"containers": []}}},
        }
        for name, kind in kinds.items()
    ]
    return [*workloads, *service("shop", "http"), *service("db", "postgres")]


def judged(
    given: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, dict[str, Any]]:
    """The status of each Pacto, by its name."""
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(given))
    assert main(["evaluate", "-f", str(path), "--fail-on", "never", "-o", "json"]) == 0
    return {item["name"]: item["status"] for item in json.loads(capsys.readouterr().out)}


def test_the_example_becomes_compliant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = judged([*applied(), *cluster()], tmp_path, capsys)
    assert {name: status["contractStatus"] for name, status in found.items()} == {
        "shop": "Compliant",
        "db": "Compliant",
    }
    assert found["shop"]["evaluationCoverage"]["evaluated"] == 2


def test_without_a_pacto_the_dependency_stays_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = [one for one in applied() if one["metadata"]["name"] != "db"]
    status = judged([*alone, *cluster()], tmp_path, capsys)["shop"]
    assert status["contractStatus"] == "Unknown"
    assert [one["code"] for one in status["findings"]] == ["OBSERVATION_UNSUPPORTED"]


def test_what_is_said_of_images_is_what_install_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--help"]) == 0
    said = capsys.readouterr().out
    assert "docs/getting-started.md" in said
    assert "\n## On a cluster\n" in (ROOT / PAGE).read_text()
    assert "\n### Build the image\n" in (ROOT / PAGE).read_text()
    texts = {"help": said, PAGE: (ROOT / PAGE).read_text(), "README.md": (ROOT / "README.md").read_text()}
    for where, text in texts.items():
        (given, *_) = re.findall(r"--set (image\.repository=[^\s`]+)", text)
        assert re.sub(r"=[^,]+", "", given) == "image.repository,image.tag,nodeAgent.image", where
    settings = (
        "image.repository=registry.example/pacto,image.tag=0.1.0,nodeAgent.image=registry.example/pacto:2"
    )
    command = ["install", "--node-agent", "--dry-run=client", "-o", "yaml", "--set", settings]
    assert main(command) == 0
    objects = [one for one in yaml.safe_load_all(capsys.readouterr().out) if one["kind"] == "Deployment"]
    (container,) = objects[0]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/pacto:0.1.0"
    assert "--node-agent-image=registry.example/pacto:2" in container["args"]
