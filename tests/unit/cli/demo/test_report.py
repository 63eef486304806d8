# SPDX-License-Identifier: MIT
"""What a person and a program are told, and the facts below each finding."""

from __future__ import annotations

import json

import pytest

from kubectl_pacto.cli.demo.facts import facts_of
from kubectl_pacto.cli.demo.judge import EXPECTED, EXPECTED_STATUSES, Expected, ExpectedStatus
from kubectl_pacto.cli.demo.report import Outcome, render
from tests.unit.cli.demo.scene import START, play

ABSENT, UNREACHABLE, UNDECLARED = EXPECTED
ALONE = dict.fromkeys(["audit", "inventory", "orders", "payments"], "Compliant")


def outcome(seconds: int = 12) -> Outcome:
    judge, scene = play(seconds)
    return Outcome(judge, scene, START, ALONE)


@pytest.mark.parametrize(
    ("one", "facts"),
    [
        (
            ABSENT,
            [
                "endpoint 10.244.7.12:8080 of Service inventory is ready",
                "pod inventory listens on no port",
                "complete: baseline 1.5 s after the pod started, heartbeat 0.2 s old",
                "negative without a break for",
            ],
        ),
        (
            UNREACHABLE,
            [
                "endpoint 10.244.7.12:8080 of Service inventory is ready",
                "pod orders to 10.244.7.12:8080: 0 connected, 10 failed (refused), last 0.5 s ago",
                "complete: baseline",
                "negative without a break for",
            ],
        ),
        (
            UNDECLARED,
            [
                "10.244.7.13:8080 is Pacto audit's; orders declares only payments, inventory",
                "pod orders to 10.244.7.13:8080: 10 connected, 0 failed, last 0.5 s ago",
                "complete: baseline",
            ],
        ),
        (
            EXPECTED_STATUSES[0],
            ["endpoint 10.244.7.11:8080", "pod payments listens on 0.0.0.0:8080", "complete: baseline"],
        ),
    ],
    ids=["interface", "dependency", "undeclared", "compliant"],
)
def test_a_finding_names_what_it_rests_on(one: Expected | ExpectedStatus, facts: list[str]) -> None:
    judge, scene = play(12)
    found = facts_of(one, scene, judge.status(one.pacto))
    assert len(found) == len(facts)
    for (_, fact), start in zip(found, facts, strict=True):
        assert fact.startswith(start)


def test_a_person_reads_each_finding_with_its_collector_and_time() -> None:
    text = render(outcome(), "table")
    for one in EXPECTED:
        assert f"{one.code}  {one.pacto}, {one.subject}  (" in text
        assert f"collector  {one.collector}\n" in text
    assert "inventory  Compliant         NonCompliant" in text
    assert text.endswith("after the start.\n")
    assert max(map(len, text.splitlines())) <= 100


def test_a_program_reads_the_same() -> None:
    data = json.loads(render(outcome(), "json"))
    assert data["complete"] is True
    assert data["missing"] == []
    assert [finding["code"] for finding in data["findings"]] == [one.code for one in EXPECTED]
    assert all(finding["restsOn"] and finding["evidenceRefs"] for finding in data["findings"])
    assert len(data["statuses"]) == 4
    assert data["seconds"] == max(finding["secondsFromStart"] for finding in data["findings"])


def test_what_was_not_seen_is_told_with_what_came_instead() -> None:
    made = outcome(5)
    assert not made.is_complete
    text = render(made, "table")
    assert "Not seen within 5.0 s:" in text
    assert "INTERFACE_ABSENT of inventory, interface/api (collector k8s-observer+ebpf)" in text
    assert "instead EVIDENCE_INSUFFICIENT" in text
    data = json.loads(render(made, "json"))
    assert data["complete"] is False
    assert len(data["missing"]) == 2
