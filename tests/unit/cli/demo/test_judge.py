# SPDX-License-Identifier: MIT
"""The demo's verdict: it comes when it is proven, from the kernel, and not otherwise."""

from __future__ import annotations

import pytest

from kubectl_pacto.cli.demo.judge import EXPECTED, EXPECTED_STATUSES, headlines, kubernetes_alone
from kubectl_pacto.cli.demo.objects import PORT, cluster_objects
from tests.unit.cli.demo.scene import START, play, pods

ABSENT, UNREACHABLE, UNDECLARED = EXPECTED


def test_all_of_the_verdict_stands_after_the_window() -> None:
    judge, _ = play(12)
    assert judge.missing() == []
    assert set(judge.first_seen) == {*EXPECTED, *EXPECTED_STATUSES}
    assert judge.status("inventory")["contractStatus"] == "NonCompliant"
    assert judge.status("orders")["contractStatus"] == "NonCompliant"


def test_an_absence_is_no_finding_before_its_window_is_over() -> None:
    judge, _ = play(5)
    assert ABSENT in judge.missing()
    assert "window runs" in headlines(judge.statuses)["inventory"]
    judge, _ = play(7)
    assert ABSENT not in judge.missing()


def test_without_the_kernel_kubernetes_finds_nothing_wrong() -> None:
    judge, _ = play(12)
    alone = kubernetes_alone(cluster_objects(pods(), judge.statuses), START + 12)
    assert alone == dict.fromkeys(["audit", "inventory", "orders", "payments"], "Compliant")


@pytest.mark.parametrize(
    "change",
    [
        {"listeners": [{"address": "0.0.0.0", "port": PORT}]},
        {"complete": False, "reasons": ["EventsDropped"]},
    ],
    ids=["it listens", "events were dropped"],
)
def test_no_absence_where_the_kernel_does_not_prove_it(change: dict[str, object]) -> None:
    judge, _ = play(12, inventory=change)
    assert ABSENT in judge.missing()


def test_no_absence_while_the_pod_is_not_ready() -> None:
    judge, _ = play(12, ready=False)
    assert ABSENT in judge.missing()


def test_no_connections_no_finding_about_dependencies() -> None:
    judge, _ = play(12, orders={"peers": []})
    assert {UNREACHABLE, UNDECLARED} <= set(judge.missing())


def test_since_when_a_finding_stands_is_the_first_pass_that_had_it() -> None:
    judge, _ = play(12)
    first = judge.first_seen[ABSENT]
    assert START + 6 <= first <= START + 7
    assert judge.first_seen[UNREACHABLE] > first  # it also waits until its node saw a whole recency
