# SPDX-License-Identifier: MIT
"""One namespace number, two pods in a row: without a cookie the time of the pod's first process decides."""

from __future__ import annotations

import pytest

from kubectl_pacto.model.node import FailureReason
from pacto_agent.flows import ConnectionSums
from pacto_agent.podmap import Place, PodMap
from pacto_agent.view import View


def sums(at: float, *, cookie: int = 0) -> ConnectionSums:
    return ConnectionSums(1, 7, "10.0.0.1", 80, 1, 0, 0, at, None, FailureReason.NONE, cookie)


def view(*, cookie: int = 0) -> View:
    made = View()
    place = Place("pod", netns=7, pids=(1,), started_at=1000.0, cookie=cookie)
    made.set_map(PodMap(places={"pod": place}, owners={7: "pod"}, namespaces=frozenset({7})))
    return made


@pytest.mark.parametrize(("at", "is_ours"), [(999.0, False), (999.89, False), (999.95, True), (1000.0, True)])
def test_a_connection_from_before_the_pod_is_another_s(at: float, is_ours: bool) -> None:
    made = view()
    assert made.apply_connections(sums(at), now=1001.0) is is_ours
    (pod,) = made.snapshot(1001.0)
    assert len(pod.peers) == is_ours


def test_a_cookie_decides_instead_of_the_time() -> None:
    made = view(cookie=42)
    assert made.apply_connections(sums(900.0, cookie=42), now=1001.0)
    assert not made.apply_connections(sums(1000.5, cookie=43), now=1001.0)


def test_an_abort_has_no_time_and_is_taken() -> None:
    made = view()
    abort = ConnectionSums(1, 7, "10.0.0.1", 80, 0, 0, 1, None, None, FailureReason.NONE)
    assert made.apply_connections(abort, now=1001.0)
