# SPDX-License-Identifier: MIT
"""What other threads do between two steps of one check: its verdict is about one view, never a mixed one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kubectl_pacto.collect.live import LiveCluster
from kubectl_pacto.collect.live_nodes import NodeRecord
from kubectl_pacto.collect.node_index import index_node
from kubectl_pacto.conformance.check import check
from kubectl_pacto.controller import reconcile as module
from kubectl_pacto.kube.errors import ApiForbidden
from kubectl_pacto.observe.resolve import directory
from tests.support import builders
from tests.unit.controller.fixtures import World

Raw = dict[str, Any]
OTHER = (builders.NAMESPACE, "till")
CONFIGURED: Raw = {
    "contract": {"configurations": [{"name": "app", "required": True, "schema": "app.json"}]},
    "target": {"configBindings": [{"configuration": "app", "kind": "ConfigMap", "name": "conf"}]},
}
SILENT: Raw = {"pods": {"a": {"started": 600, "listens": []}}}
UNLISTED: Raw = {"pods": {"a": {"started": 600, "view": "none"}}}


class _Enough(Exception):
    """The other check has done what it is here for."""


class Configured(World):
    """Two Pactos that bind one ConfigMap, which may not be read."""

    def __init__(self) -> None:
        super().__init__(CONFIGURED, kernel=False)
        self.meanwhile: Callable[[], None] = lambda: None
        self._put("Pacto", {**self.pacto, "metadata": {**self.pacto["metadata"], "name": OTHER[1]}})

    def get(self, path: str, *, accept: str = "") -> Raw:
        if path.endswith("/configmaps/conf"):
            self.meanwhile()
            raise ApiForbidden(method="GET", path=path, problem="no")
        return super().get(path, accept=accept)


def test_what_another_check_is_just_reading_again_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Configured()

    def judged_while_another_reads(*given: Any, **named: Any) -> Any:
        found: list[Any] = []

        def meanwhile() -> None:
            found.append(check(*given, **named))
            raise _Enough

        world.meanwhile = meanwhile
        with suppress(_Enough):
            world.reconciler.reconcile(world, OTHER, world.mono)  # type: ignore[arg-type]
        return found[0]

    monkeypatch.setattr(module, "check", judged_while_another_reads)
    world.run()
    assert [one["message"] for one in world.status["findings"] if "does not exist" in one["message"]] == []
    assert world.codes == ["COLLECTION_FAILED"]


def test_a_node_object_that_comes_within_a_check_is_not_read_beside_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The state of an agent that ran, with a view of the next one, which never saw a thing."""
    world, view = World(SILENT), LiveCluster.view
    world.later(1)
    world.renew()
    world.run()
    assert world.status["observationWindows"]
    world.later(121)
    world.renew()
    world.apply(UNLISTED)

    def view_after_a_read(cluster: LiveCluster, namespace: str, node: str, uid: str) -> Any:
        raws = builders.objects({**SILENT, "nodes": {node: {"state": "Failed", "reason": "AttachFailed"}}})
        (raw,) = [one for one in raws if one["kind"] == "NodeRuntimeObservation"]
        newer, views = index_node(raw)
        world.objects.records[node] = NodeRecord(newer, None, world.mono, views)
        return view(cluster, namespace, node, uid)

    monkeypatch.setattr(LiveCluster, "view", view_after_a_read)
    world.run()
    assert world.codes == ["EVIDENCE_INSUFFICIENT"]
    assert "observationWindows" not in world.status


def test_a_check_adds_nothing_to_what_others_share() -> None:
    world = Configured()
    shared = world.live.generation()
    world.run()
    assert world.codes == ["COLLECTION_FAILED"]
    assert not shared.failures


def test_a_check_makes_no_index_of_its_own() -> None:
    """Ten thousand checks share what one of them would take seconds for."""
    shared = World({}).live.generation()
    copied = shared.for_one_check()
    assert copied._pods_by_label is shared._pods_by_label
    assert directory(copied) is directory(shared)
