# SPDX-License-Identifier: MIT
"""Every word and column that a command can print is explained, from one source; none that it cannot is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from kubectl_pacto.cli.checks import Result
from kubectl_pacto.cli.main import main
from kubectl_pacto.cli.render import status as status_screen
from kubectl_pacto.cli.render import table as evaluated
from kubectl_pacto.cli.render.coverage import LEVELS, NODE_COLUMNS, POD_COLUMNS
from kubectl_pacto.collect.fleet_nodes import NodeState
from kubectl_pacto.conformance import conditions
from kubectl_pacto.controller.generate import crds
from kubectl_pacto.engine.ladder import ContractStatus
from kubectl_pacto.explain import pages
from kubectl_pacto.explain.words import columns, find, names, of_kind, plain, words
from kubectl_pacto.model.evidence import Collector, Outcome
from kubectl_pacto.model.finding import REGISTRY, Severity
from kubectl_pacto.model.node import CollectionReason, FailureReason, PodReason
from kubectl_pacto.observe.coverage import TOO_OLD
from kubectl_pacto.observe.interface import PROBE_ANSWERED
from kubectl_pacto.observe.words import REASONS
from scripts.words import generated
from tests.support.sources import ROOT

SOURCES = (
    Path("kubectl_pacto", "observe", "coverage.py"),
    Path("kubectl_pacto", "collect", "fleet_nodes.py"),
)
NODE_REASONS = {*(one.value for one in CollectionReason if one), "NoNodeObject", TOO_OLD, "NotLinux"}
# a reason that names a pod is said by `observe`, the others by agents
POD_REASONS = {*REASONS} - NODE_REASONS | {one.value for one in PodReason}
# kind -> the code's own list of its words
KNOWN: dict[str, Iterable[str]] = {
    "ContractStatus": {*ContractStatus, *status_screen.ORDER, "Deleted"},
    "Severity": {*Severity},
    "NodeState": {*NodeState},
    "NodeReason": NODE_REASONS,
    "PodLevel": {level.name.title() for level in LEVELS},
    "PodReason": POD_REASONS,
    "Doubt": {PROBE_ANSWERED},
    "Outcome": {*Outcome},
    "Collector": {*Collector},
    "Connection": {*(one.value for one in FailureReason if one), "ok", "tried", "failed"},
    "Condition": {*conditions.ORDER},
    "ConditionReason": set(
        re.findall(r'"(?:True|False|Unknown)", "(\w+)"', Path(conditions.__file__).read_text())
    ),
    "CheckResult": {*Result},
}


def test_every_kind_has_a_list_to_be_held_to() -> None:
    assert {one.kind for one in words()} == set(KNOWN)
    assert len(set(KNOWN["ConditionReason"])) > 5


@pytest.mark.parametrize("kind", KNOWN)
def test_the_words_of_a_kind_are_those_of_the_code(kind: str) -> None:
    assert set(names(of_kind(kind))) == {str(word) for word in KNOWN[kind]}


def test_every_reason_that_is_written_in_the_code_is_a_word() -> None:
    text = "".join((ROOT / path).read_text() for path in SOURCES)
    written = set(re.findall(r'reasons\.append\("(\w+)"\)|, "((?:No|Not)[A-Z]\w+)"', text))
    said = {one for pair in written for one in pair if one}
    assert {"HostNetwork", "NoNodeObject", "NotLinux"} <= said
    assert [one for one in said if not find(one)] == []


def test_every_column_is_explained(golden_headers: dict[str, list[str]]) -> None:
    served = {
        crd["spec"]["names"]["kind"]: [
            "NAME",
            *(one["name"].upper() for one in version["additionalPrinterColumns"]),
        ]
        for crd in crds()
        for version in crd["spec"]["versions"]
    }
    shown = {
        "kubectl pacto status": [one.header for one in (status_screen.NAMESPACE, *status_screen.COLUMNS)],
        "kubectl pacto evaluate": list(evaluated.HEADERS),
        "kubectl pacto findings": golden_headers["findings"],
        "kubectl pacto coverage": [one.header for one in NODE_COLUMNS],
        "kubectl pacto coverage --node NODE, --pod POD": [one.header for one in POD_COLUMNS],
        "kubectl get pactos": served["Pacto"],
        "kubectl get noderuntimeobservations -n pacto-node-agent": served["NodeRuntimeObservation"],
        "kubectl get pactorevisions": served["PactoRevision"],
    }
    assert {command: list(found) for command, found in columns().items()} == shown


@pytest.fixture
def golden_headers() -> dict[str, list[str]]:
    """Headers as the golden files have them."""
    first = (ROOT / "tests" / "golden" / "cli" / "findings.wide.txt").read_text().splitlines()[0]
    return {"findings": first.split()}


def test_no_word_is_the_code_of_a_finding() -> None:
    assert not {plain(one.word) for one in words()} & {plain(code) for code in REGISTRY}


def test_the_documentation_is_made_of_the_words() -> None:
    found = generated()
    assert {path.name for path in found} == {"tables.md", "observations.md"}
    for path, text in found.items():
        assert path.read_text() == text
        assert [
            one.word for one in words() if path.name == "tables.md" and f"| `{one.word}` |" not in text
        ] == []


@pytest.mark.parametrize("page", sorted({one.page for one in words()}))
def test_the_page_of_a_word_is_there(page: str) -> None:
    name, _, anchor = page.partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / name).read_text(), re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
    assert not anchor or anchor in made


def test_codes_that_words_name_are_known() -> None:
    named = {
        code
        for one in words()
        for text in (one.means, one.do, *one.details.values())
        for code in re.findall(r"\b[A-Z]+_[A-Z_]+\b", text)
    }
    assert named
    assert named <= set(pages())


@pytest.mark.parametrize("word", ["HeartbeatTooOld", "heartbeat-too-old", "HEARTBEATTOOOLD"])
def test_a_word_is_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "HeartbeatTooOld  (reason of a node's state)\n\nWhat it means\n  The agent has not"
    )
    assert "Where it stands\n  `kubectl pacto coverage`, column REASON" in said
    assert "docs/observations.md#the-state-of-a-node" in said
    assert "What to do\n" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_word_of_several_kinds_is_explained_in_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "stale", "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)
    assert [(one["code"], one["category"], one["severity"]) for one in items] == [
        ("Stale", "NodeState", "none"),
        ("Stale", "PodLevel", "none"),
        ("Stale", "Outcome", "none"),
    ]
    assert all(one["means"] and one["do"] and one["where"] and one["page"] for one in items)


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [("HeartbeatToOld", "HeartbeatTooOld"), ("truncted", "Truncated"), ("NonCompliance", "NonCompliant")],
)
def test_a_mistyped_word_is_suggested(mistyped: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", mistyped]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: no code or word is called {mistyped}; did you mean ")
    assert meant in said
