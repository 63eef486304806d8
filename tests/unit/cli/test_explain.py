# SPDX-License-Identifier: MIT
"""`kubectl pacto explain`, and that every code of the registry has its page."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.explain import generated, pages
from kubectl_pacto.model.finding import REGISTRY

DOCS = Path(__file__).parents[3] / "docs" / "findings"


def test_there_is_a_page_for_every_code_and_none_for_another() -> None:
    raw = yaml.safe_load((files("kubectl_pacto.explain") / "pages.yaml").read_text())
    assert set(raw) == set(REGISTRY)
    for page in pages().values():
        assert all(text.strip() for _, text in page.sections())


def test_the_documentation_is_generated_from_the_pages() -> None:
    assert {path.name: path.read_text() for path in DOCS.glob("*.md")} == generated()


@pytest.mark.parametrize("code", ["INTERFACE_ABSENT", "interface_absent", "interface-absent"])
def test_a_page_is_printed(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", code]) == 0
    said = capsys.readouterr().out
    assert said.startswith("INTERFACE_ABSENT  (error, RuntimeDrift)\n\nWhat it means\n  A declared interface")
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_page_is_data_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "DEPENDENCY_UNDECLARED", "-o", "json"]) == 0
    (page,) = json.loads(capsys.readouterr().out)
    assert (page["severity"], page["category"]) == ("warning", "RuntimeDrift")


def test_all_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == sorted(REGISTRY)


def test_an_unknown_code_suggests_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "INTERFACE_ABSNT"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no finding is called INTERFACE_ABSNT; did you mean INTERFACE_ABSENT, ")
    assert said.endswith("? (`kubectl pacto explain` lists them)\n")


def test_a_code_like_none_is_told_where_all_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "FOO"]) == 2
    said = capsys.readouterr().err
    assert said == "error: no finding is called FOO (`kubectl pacto explain` lists them)\n"
