# SPDX-License-Identifier: MIT
"""The tables are whole: no sentence without a scenario, and none that a scenario invents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance import report, test_acceptance
from tests.acceptance.actions import ACTIONS
from tests.acceptance.expect import mismatch
from tests.acceptance.objects import App
from tests.acceptance.scene import Row
from tests.acceptance.table import Expected, elsewhere, scenarios, sentences
from tests.cluster.layout import REPOSITORY

# what the tests of the release itself add, as their calls to Run.add say
BY_TESTS = frozenset(
    {
        "daemon-set", "linux-only", "confined", "own-namespace", "resources", "no-port", "policy", "rights",
        "heartbeat", "publish-interval", "bound",
    }
)  # fmt: skip


def test_every_sentence_is_executed_or_says_who_proves_it() -> None:
    executed = {name for one in scenarios() for name in one.proves} | BY_TESTS
    missing = set(sentences()) - executed - set(elsewhere())
    assert not missing


def test_no_scenario_proves_a_sentence_that_is_none() -> None:
    assert {name for one in scenarios() for name in one.proves} <= set(sentences())
    assert set(elsewhere()) <= set(sentences())
    assert set(sentences()) >= BY_TESTS


def test_what_tests_claim_to_prove_is_in_their_source() -> None:
    source = Path(test_acceptance.__file__).read_text()
    assert all(f'"{name}"' in source for name in BY_TESTS)


@pytest.mark.parametrize("name", sorted(elsewhere()))
def test_who_proves_it_elsewhere_exists(name: str) -> None:
    where = REPOSITORY / elsewhere()[name]["by"]
    assert where.is_file()
    assert elsewhere()[name]["holds"] in where.read_text()


def test_scenarios_have_names_of_their_own_and_known_actions() -> None:
    assert not [name for name, count in Counter(one.id for one in scenarios()).items() if count > 1]
    for one in scenarios():
        assert {name for step in one.steps for action in step.do for name in action} <= set(ACTIONS), one.id
        assert {name for step in one.steps for name in step.expect} <= set(one.apps), one.id
        assert not one.continues or one.continues in {other.id for other in scenarios() if other.keeps}


def test_a_field_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no field colour"):
        App("ns", "api", {"colour": "red"})


STATUS = {
    "contractStatus": "NonCompliant",
    "findings": [
        {
            "code": "INTERFACE_ABSENT", "severity": "error", "subject": "interface/api", "message": "nobody",
            "evidenceRefs": [{"collector": "k8s-observer"}],
        }
    ],
    "evaluationCoverage": {"unverified": [{"contractPath": "a"}]},
    "kernelEvidence": {"stale": 1, "reasons": {"NoNodeObject": 1}},
}  # fmt: skip


@pytest.mark.parametrize(
    "expected",
    [
        Expected("NonCompliant"),
        Expected("NonCompliant", findings=("INTERFACE_ABSENT error k8s-observer",), says="nobody"),
        Expected(
            "NonCompliant", unverified=("a",), kernel={"stale": 1, "complete": 0}, reasons={"NoNodeObject": 1}
        ),
    ],
)
def test_a_status_that_says_it_matches(expected: Expected) -> None:
    assert mismatch(expected, STATUS) == ""


@pytest.mark.parametrize(
    "expected",
    [
        Expected("Compliant"),
        Expected("NonCompliant", findings=()),
        Expected("NonCompliant", findings=("INTERFACE_ABSENT error k8s-observer+ebpf",)),
        Expected("NonCompliant", findings=("INTERFACE_ABSENT", "INTERFACE_ABSENT")),
        Expected("NonCompliant", says="somebody"),
        Expected("NonCompliant", unverified=()),
        Expected("NonCompliant", kernel={"complete": 1}),
        Expected("NonCompliant", reasons={"NoNodeObject": 2}),
    ],
)
def test_a_status_that_differs_does_not(expected: Expected) -> None:
    assert mismatch(expected, STATUS)


def test_the_page_has_every_sentence_and_every_row() -> None:
    rows = [Row(one.id, one.proves, step.cause, "ok", 1.5) for one in scenarios() for step in one.steps]
    text = report.document(rows, where="here", took=9, interval=2, window=4)
    assert all(words in text for _, words in sentences().values())
    assert all(row.cause.replace("|", "\\|") in text for row in rows)
