# SPDX-License-Identifier: MIT
"""What a report is about: selectors as kubectl writes them, and namespaces that objects leave out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kubectl_pacto.cli.main import main
from tests.support.service_graph import AT, small


def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, bare: bool = False) -> list[str]:
    """The names of the Pactos in the report; web has labels."""
    raws = small().objects()
    raws[0]["metadata"]["labels"] = {"team": "web", "tier": "edge"}
    if bare:
        for raw in raws:
            raw["metadata"].pop("namespace", None)
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all(raws))
    capsys.readouterr()
    assert main(["report", "-f", str(path), "--at", AT, "-o", "json", *words]) == 0
    return sorted(one["name"] for one in json.loads(capsys.readouterr().out)["pactos"])


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("", ["orders", "stock", "web"]),
        ("team=web", ["web"]),
        ("team==web,tier = edge", ["web"]),
        ("team!=web", ["orders", "stock"]),
        ("team in (web, orders),tier", ["web"]),
        ("team notin (web)", ["orders", "stock"]),
        ("!tier", ["orders", "stock"]),
        ("tier,tier!=edge", []),
    ],
)
def test_a_selector_selects_as_the_api_server_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], selector: str, found: list[str]
) -> None:
    assert scope(tmp_path, capsys, "-l", selector) == found


@pytest.mark.parametrize("selector", ["team>web", "team in web", "team=web,", "team in (web"])
def test_a_selector_that_is_none_is_refused_instead_of_passing_a_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], selector: str
) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(small().text())
    assert main(["report", "-f", str(path), "--at", AT, "-l", selector, "--fail-on", "error"]) == 2
    assert "--selector" in capsys.readouterr().err


def test_an_object_without_a_namespace_is_of_the_default_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scope(tmp_path, capsys, "-n", "default", bare=True) == ["orders", "stock", "web"]


def test_what_only_has_the_name_of_a_kind_is_no_part_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raws = small().objects()
    strange = {"apiVersion": "example.com/v1", "metadata": {"name": "other", "namespace": "shop"}}
    raws += [
        {**strange, "kind": kind} for kind in ("Pacto", "Pod", "Node", "Lease", "NodeRuntimeObservation")
    ]
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all(raws))
    assert main(["report", "-f", str(path), "--at", AT, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sorted(one["name"] for one in data["pactos"]) == ["orders", "stock", "web"]
    assert "other" not in json.dumps([data["nodes"], data["pods"]])
