# SPDX-License-Identifier: MIT
"""`kubectl pacto explain`, and that every code of the registry has its page."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.cli.render.coverage import NODE_COLUMNS, POD_COLUMNS
from kubectl_pacto.explain import generated, pages
from kubectl_pacto.explain.words import words
from kubectl_pacto.model.finding import REGISTRY
from kubectl_pacto.model.node import FailureReason

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


def test_all_codes_are_listed_and_then_all_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [*sorted(REGISTRY), *(one.word for one in words())]


def test_an_unknown_code_suggests_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "INTERFACE_ABSNT"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no code or word is called INTERFACE_ABSNT; did you mean INTERFACE_ABSENT")
    assert said.endswith("? (`kubectl pacto explain` lists all)\n")


def test_a_code_like_none_is_told_where_all_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "FOO"]) == 2
    said = capsys.readouterr().err
    assert said == "error: no code or word is called FOO (`kubectl pacto explain` lists all)\n"


@pytest.mark.parametrize("reason", [one.value for one in FailureReason if one])
def test_a_dependencys_page_and_its_words_know_each_reason_of_a_failure(reason: str) -> None:
    page = pages()["DEPENDENCY_UNREACHABLE"]
    assert f"`{reason}`" in page.do
    assert "`kubectl pacto status PROVIDER -n NAMESPACE`" in page.do


def test_what_is_insufficient_by_mistake_is_not_called_passing() -> None:
    page = pages()["EVIDENCE_INSUFFICIENT"]
    troubleshooting = (DOCS.parent / "troubleshooting.md").read_text()
    assert "port that the binding names" in page.rests
    assert "waiting does not help" in page.do
    assert "the Service has no such port" in troubleshooting
    assert "no Pacto provides it" in troubleshooting


def test_what_an_agent_said_is_looked_for_where_it_stands() -> None:
    said = [column.header for column in NODE_COLUMNS if column.wide]
    assert "MESSAGE" in said
    assert "MESSAGE" not in [column.header for column in POD_COLUMNS]
    assert "`kubectl pacto coverage -o wide`" in pages()["EVIDENCE_STALE"].do


@pytest.mark.parametrize(
    ("contract", "code"),
    [('pactoVersion: "9.9"', "UNSUPPORTED_PACTO_VERSION"), ('pactoVersion: "2.0"', "SCHEMA_VIOLATION")],
)
def test_codes_of_an_invalid_contract_are_said_to_be_explained(
    contract: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = {
        "apiVersion": "pacto.trianalab.io/v1alpha1",
        "kind": "Pacto",
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {"contractRef": {"inline": contract}},
    }
    path = tmp_path / "shop.yaml"
    path.write_text(yaml.safe_dump(raw))
    assert main(["evaluate", "-f", str(path)]) == 3
    said = capsys.readouterr().out
    assert code in said
    assert said.endswith("\n`kubectl pacto explain CODE` says what a finding means and what to do.\n")
