# SPDX-License-Identifier: MIT
"""What every command prints, as golden files; `pytest --update-golden tests/unit/cli` writes them anew.

Listings, `check`, `evaluate` and `report` have theirs beside their other tests, by the same fixture.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_pacto.cli.main import COMMANDS, main
from kubectl_pacto.jsonschemas import validator, violations
from tests.support.builders import objects
from tests.unit.cli.conftest import GOLDEN, Plugin
from tests.unit.cli.fleet_scene import pacto
from tests.unit.cli.test_evaluate_golden import ROW
from tests.unit.cli.test_listing import SCHEMAS

Golden = Callable[[str, str], None]


@pytest.fixture
def scene(plugin: Plugin) -> Plugin:
    """The scene, with a provider that `suggest` can name."""
    audit = pacto("ops", "audit", "Compliant", contract={"serviceName": "audit", "version": "2.1.0"})
    plugin.api.add({**audit, "spec": {"contractRef": {"oci": "registry.example/ops/audit:2.1.0"}}})
    return plugin


@pytest.mark.parametrize("command", ["", *sorted(COMMANDS)])
def test_help(
    command: str, golden: Golden, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([*([command] if command else []), "-h"]) == 0
    golden(f"help/{command or 'kubectl-pacto'}", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("suggest.yaml", ("suggest", "-A")),
        ("suggest.json", ("suggest", "-A", "-o", "json")),
        ("bundle.yaml", ("bundle",)),
        ("bundle.json", ("bundle", "-o", "json")),
        ("status-nothing", ("status", "-n", "none")),
        ("status-no-such", ("status", "nope", "-n", "shop")),
        ("findings-nothing", ("findings", "inventory", "-n", "shop")),
        ("usage", ("status", "x", "-A")),
    ],
)
def test_of_a_cluster(scene: Plugin, golden: Golden, name: str, words: Sequence[str]) -> None:
    golden(name, scene(*words).text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("completion", ("completion",)),
        ("explain", ("explain",)),
        ("explain-code", ("explain", "INTERFACE_ABSENT")),
        ("explain-code.json", ("explain", "INTERFACE_ABSENT", "-o", "json")),
        ("complete", ("__complete", "")),
        ("complete-flags", ("__complete", "coverage", "--")),
    ],
)
def test_of_no_cluster(
    name: str, words: Sequence[str], golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    golden(name, capsys.readouterr().out)


# command -> the schema of what it prints as JSON
OUTPUTS: Final = {
    ("status", "-A"): "Status",
    ("findings", "-A"): "FindingList",
    ("coverage",): "NodeCoverageList",
    ("coverage", "--node", "node-a"): "PodCoverageList",
    ("check",): "CheckReport",
    ("check", "--pre"): "CheckReport",
    ("version",): "Version",
    ("suggest", "-A"): "SuggestedList",
    ("bundle",): "ObjectList",
    ("report", "-A"): "Report",
    ("install", "--dry-run", "client"): "ObjectList",
    ("explain",): "ExplanationList",
    ("explain", "INTERFACE_ABSENT"): "ExplanationList",
}


def fits(name: str, text: str) -> None:
    """Assert that a text is JSON of a schema."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    assert schema["$id"].endswith(f"/{name}.json")
    assert violations(validator(schema), json.loads(text)) == []


@pytest.mark.parametrize(("words", "name"), OUTPUTS.items(), ids=str)
def test_each_json_fits_its_schema(
    scene: Plugin, words: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] == "explain":
        assert main([*words, "-o", "json"]) == 0
        fits(name, capsys.readouterr().out)
        return
    fits(name, scene(*words, "-o", "json").out)


def test_each_kind_of_evaluate_fits_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bundle.yaml"
    path.write_text(yaml.safe_dump_all(objects(ROW)))
    for more in ([], ["--evidence"]):
        assert main(["evaluate", "-f", str(path), "-o", "json", "--fail-on", "never", *more]) == 0
        fits("EvaluatedList", capsys.readouterr().out)


def test_the_demo_fits_its_schema() -> None:
    from kubectl_pacto.cli.demo.report import render
    from tests.unit.cli.demo.test_report import outcome

    fits("Demo", render(outcome(), "json"))


def test_there_is_no_schema_without_an_output() -> None:
    here = {*OUTPUTS.values(), "EvaluatedList", "Demo"}
    assert {path.stem for path in SCHEMAS.glob("*.json")} == here


def test_a_schema_refuses_what_is_not_so() -> None:
    for name in sorted({*OUTPUTS.values(), "EvaluatedList", "Demo"}):
        schema: Any = json.loads((SCHEMAS / f"{name}.json").read_text())
        wrong: Any = [{}] if schema["type"] == "array" else {}
        assert violations(validator(schema), wrong), name


def test_there_is_no_golden_file_without_a_test(request: pytest.FixtureRequest) -> None:
    """Each file's name is in the text of a test, or is made of a name that is."""
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    for path in GOLDEN.rglob("*.txt"):
        stem = path.relative_to(GOLDEN).as_posix().removesuffix(".txt")
        if stem.startswith("help/"):
            assert stem.removeprefix("help/") in {*COMMANDS, "kubectl-pacto"}
            continue
        name = stem.partition(".")[0]
        known = [part for part in (stem, name, name.partition("-")[0]) if f'"{part}' in texts]
        assert known, stem
