# SPDX-License-Identifier: MIT
"""Passes over one Pacto: what is written, when the next pass is, and that no pass is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.controller.status_patch import merge_patch
from kubectl_pacto.kube.errors import ApiConflict
from tests.support import builders
from tests.support.merge_patch import merged
from tests.unit.controller.fixtures import KEY, World

LISTENS: dict[str, Any] = {"pods": {"a": {"started": 600}}}
SILENT: dict[str, Any] = {"pods": {"a": {"started": 600, "listens": []}}}


def test_a_first_pass_writes_a_status_and_comes_again_after_the_interval() -> None:
    world = World(LISTENS)
    world.later(1)
    world.renew()
    assert world.run() == 300
    assert world.status["contractStatus"] == "Compliant"
    (patch,) = world.patches
    assert patch["metadata"]["resourceVersion"] == "2"


def test_the_same_again_writes_nothing_until_an_interval_is_over() -> None:
    world = World(LISTENS)
    world.run()
    for _ in range(5):
        world.later(30)
        world.renew()
        world.run()
    assert len(world.patches) == 1
    world.later(150)
    world.renew()
    world.run()
    assert len(world.patches) == 2
    assert set(world.patches[1]["status"]) == {"lastReconciledAt"}


def test_ready_without_a_listener_is_absent_once_the_window_is_over() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    assert world.run() == 120
    assert world.codes == ["EVIDENCE_INSUFFICIENT"]
    world.later(60)
    world.renew()
    assert world.run() == 60
    world.later(61)
    world.renew()
    world.run()
    assert world.codes == ["INTERFACE_ABSENT"]
    (event,) = [one for one in world.events if "NonCompliant" in one["message"]]
    assert (event["reason"], event["type"]) == ("ValidationFailed", "Warning")
    (ref,) = world.status["findings"][0]["evidenceRefs"]
    assert ref["collector"] == "k8s-observer+ebpf"


def test_after_a_start_nothing_negative_is_said_before_a_heartbeat_moved() -> None:
    world = World(SILENT)
    assert world.run() == 30  # not 300: the next heartbeat is about to come
    assert world.codes == ["EVIDENCE_STALE"]
    assert "observationWindows" not in world.status


def test_nothing_negative_is_said_while_the_watch_is_silent() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    world.alive = False
    world.run()
    assert world.codes == ["EVIDENCE_STALE"]


def test_a_frozen_heartbeat_is_stale_and_closes_the_window() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    world.run()
    assert world.status["observationWindows"]
    world.later(121)
    world.run()
    assert world.codes == ["EVIDENCE_STALE"]
    assert "observationWindows" not in world.status


def test_an_object_is_vouched_for_by_heartbeats_seen_before_it_was_read_alone() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    world.run()
    world.later(121)

    def meanwhile() -> None:
        world.renew()  # comes while the object is on its way: it may vouch for a newer one

    world.on_get = meanwhile
    world.run()
    assert world.codes == ["EVIDENCE_STALE"]


def test_a_check_that_was_asked_for_waits_for_what_it_was_asked_for_with() -> None:
    """Where a generation is dear an old one is shared; what a trigger told of must not wait an interval."""
    world = World({})
    service = next(raw for raw in builders.objects({}) if raw["kind"] == "Service")
    world.live.tables["Service"].drop((builders.NAMESPACE, "shop"))
    world.live.generation()
    world.live.cost = 0.3  # as of a fleet of some thousand
    world.later(1)
    world._put("Service", service)
    asked = world.mono
    assert world.reconciler.reconcile(world, KEY, asked, asked) == pytest.approx(2)  # type: ignore[arg-type]
    assert world.patches == []
    world.later(2)
    world.run()
    assert world.status["contractStatus"] == "Compliant"


def test_a_check_that_is_asked_for_again_and_again_is_put_off_once() -> None:
    world = World({})
    world.live.generation()
    world.live.cost = 0.3
    again = []
    for _ in range(2):
        world.later(1)
        world._put("Namespace", {"metadata": {"name": f"n{world.mono}"}, "kind": "Namespace"})
        again.append(world.reconciler.reconcile(world, KEY, world.mono, world.mono))  # type: ignore[arg-type]
    assert again == [pytest.approx(2), pytest.approx(1)]
    assert len(world.patches) == 1


def test_a_listener_that_comes_within_the_window_leaves_no_trace() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    world.run()
    world.later(60)
    world.renew()
    world.apply(LISTENS)
    world.run()
    assert world.status["contractStatus"] == "Compliant"
    assert "observationWindows" not in world.status


def test_a_recovery_is_told_once() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    world.run()
    world.events.clear()
    world.apply(LISTENS)
    for _ in range(3):
        world.later(30)
        world.renew()
        world.run()
    assert [one["reason"] for one in world.events] == ["ContractRecovered"]


def test_a_conflict_is_told_to_the_queue_and_writes_nothing() -> None:
    world = World(LISTENS)
    world.conflicts = 1
    with pytest.raises(ApiConflict):
        world.run()
    assert not world.patches
    world.run()
    assert len(world.patches) == 1


def test_a_pass_on_an_old_copy_cannot_overwrite_windows() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    old = world.live.pactos.get(KEY)
    world.run()
    assert old is not None
    world.live.pactos.put(KEY, old)
    with pytest.raises(ApiConflict):
        world.run()


def test_a_pacto_that_is_gone_is_forgotten_with_its_series() -> None:
    world = World(LISTENS)
    world.run()
    assert 'name="shop"' in world.metrics.text()
    world.live.pactos.drop(KEY)
    assert world.run() is None
    assert 'name="shop"' not in world.metrics.text()


def test_a_pacto_that_goes_in_mid_check_is_no_error() -> None:
    world = World(LISTENS)
    world.on_get = lambda: world.live.pactos.drop(KEY)
    assert world.run() is None
    assert not world.patches


def test_a_young_pod_is_looked_at_again_after_a_publish_interval() -> None:
    world = World({"pods": {"a": {"started": 3, "view": "none"}}})
    world.later(1)
    world.renew()
    pause = world.run()
    assert pause is not None
    assert pause <= 30


def test_a_check_without_kernel_evidence_reads_no_node_object() -> None:
    world = World(SILENT, kernel=False)
    world.run()
    assert world.objects.reads == 0
    assert world.status["contractStatus"] == "Compliant"
    assert "kernelEvidence" not in world.status


def test_a_pull_is_not_needed_for_a_broken_contract() -> None:
    world = World({"contractRef": {"inline": "pactoVersion: [1"}})
    assert world.run() == 300
    assert world.status["contractStatus"] == "Invalid"
    assert [one["reason"] for one in world.events] == ["ContractInvalid"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}),
        ({"a": [1, 2]}, {"a": [2]}),
        ({"a": {"x": 1}}, {"a": 3}),
        ({"a": 3}, {"a": {"x": {"y": 1}}}),
        ({"a": {}}, {"a": {}}),
        ({}, {"a": {}}),
    ],
)
def test_a_patch_makes_one_of_the_other(before: Any, after: Any) -> None:
    assert merged(before, merge_patch(before, after)) == after


def failing(seconds: float) -> dict[str, Any]:
    """A dependency that failed so many seconds after the first check; the message names the time."""
    peer = f"10.96.0.1:5432 fail {-seconds}"
    return {
        "contract": {"interfaces": ["api"], "dependencies": ["db"]},
        "providers": {"db": {}},
        "pods": {"a": {"started": 600, "peers": [peer]}},
    }


def test_a_message_that_names_a_later_time_is_no_news() -> None:
    world = World(failing(0))
    world.later(1)
    world.renew()
    world.run()
    assert world.codes == ["EVIDENCE_INSUFFICIENT"]
    before = world.status["findings"][0]["message"]
    for seconds in (20, 40, 60):
        world.apply(failing(seconds))
        world.later(20)
        world.renew()
        world.run()
    assert len(world.patches) == 1
    assert "2026-10-18T09:12:44" in before  # or this test would prove nothing


def test_one_pass_writes_once_and_tells_a_transition_once() -> None:
    world = World(SILENT)
    world.later(1)
    world.renew()
    for seconds in (61, 61, 61, 20):
        world.run()
        world.later(seconds)
        world.renew()
    reasons = [(one["reason"], one["message"].partition(":")[0]) for one in world.events]
    assert reasons == [("ValidationFailed", "Unknown"), ("ValidationFailed", "NonCompliant")]
    assert len(world.patches) == 2
