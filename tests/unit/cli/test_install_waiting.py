# SPDX-License-Identifier: MIT
"""How long install and upgrade wait for agents: as long as their rollout takes, and till they have stood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubectl_pacto.cli.errors import NotReadyInTime
from kubectl_pacto.cli.install import wait
from kubectl_pacto.cli.install.wait import rollout_seconds, wait_ready
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound

Raw = dict[str, Any]
EACH = 30 + wait.START_SECONDS


def daemon_set(nodes: int, updated: int, share: object = "10%", **status: int) -> Raw:
    """The agents' DaemonSet of so many nodes, so many of which have an agent of now; all are ready."""
    counts = {"desiredNumberScheduled": nodes, "numberReady": nodes, "numberAvailable": nodes}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "pacto-node-agent", "namespace": "agents", "generation": 2},
        "spec": {
            "minReadySeconds": 30,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": share}},
            "selector": {"matchLabels": {}},
            "template": {"spec": {"containers": [{"image": "agent:2", "args": []}]}},
        },
        "status": {"observedGeneration": 2, **counts, "updatedNumberScheduled": updated, **status},
    }


class Cluster:
    """A cluster whose one object is `now` of the seconds that have passed, and its clock."""

    def __init__(self, now: Callable[[float], Raw | None]) -> None:
        self.passed = 0.0
        self._now = now
        self.said: list[str] = []

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def get(self, path: str, **_: Any) -> Raw:
        if "pods" in path:
            return {"metadata": {"resourceVersion": "1"}, "items": []}
        found = self._now(self.passed)
        if found is None:
            raise ApiNotFound(method="GET", path=path, problem="no")
        return found

    received = 0

    def wait(self, monkeypatch: pytest.MonkeyPatch, timeout: float | None = None) -> None:
        """Wait as install does."""
        monkeypatch.setattr(wait, "time", self)
        client: Client = self  # type: ignore[assignment]
        wait_ready(client, [daemon_set(0, 0)], timeout, self.said.append)


@pytest.mark.parametrize(
    ("nodes", "updated", "share", "batches"),
    [
        (20, 0, "10%", 10),
        (20, 10, "10%", 5),
        (25, 0, "10%", 9),  # three at a time: a share is rounded up
        (2, 0, "10%", 2),
        (7, 0, 3, 3),
        (7, 0, "100%", 1),
        (20, 20, "10%", 1),
        (0, 0, "10%", 1),
    ],
)
def test_a_rollout_takes_its_batches(nodes: int, updated: int, share: object, batches: int) -> None:
    assert rollout_seconds(daemon_set(nodes, updated, share)) == batches * EACH


def test_a_status_of_before_the_change_counts_none_as_updated() -> None:
    assert rollout_seconds(daemon_set(20, 20, observedGeneration=1)) == 10 * EACH


def test_what_is_not_said_is_what_the_server_assumes() -> None:
    found = daemon_set(3, 0)
    del found["spec"]["updateStrategy"], found["spec"]["minReadySeconds"]
    assert rollout_seconds(found) == 3 * wait.START_SECONDS


def test_the_default_is_enough_for_a_rollout_of_ten_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator needs a minute, then each batch of two nodes 35 seconds: six minutes and a half."""
    cluster = Cluster(lambda passed: daemon_set(20, min(20, 2 * int(max(0, passed - 60) / 35))))
    cluster.wait(monkeypatch)
    assert 60 + 350 <= cluster.passed < 60 + 352
    assert cluster.said[0] == "waiting for daemonset.apps/pacto-node-agent (0 of 20 updated)"


def test_the_default_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(lambda _: daemon_set(20, 4))
    with pytest.raises(NotReadyInTime) as caught:
        cluster.wait(monkeypatch)
    assert caught.value.facts["timeout"] == wait.AT_LEAST + 8 * EACH
    nothing = Cluster(lambda _: None)
    with pytest.raises(NotReadyInTime) as caught:
        nothing.wait(monkeypatch)
    assert caught.value.facts["timeout"] == wait.AT_LEAST


def test_what_was_told_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(lambda _: daemon_set(20, 4))
    with pytest.raises(NotReadyInTime, match="not ready after 7s"):
        cluster.wait(monkeypatch, 7)


def test_agents_that_only_just_run_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent has no probe: ready is that its process has been started."""
    cluster = Cluster(lambda passed: daemon_set(2, 2, numberAvailable=2 if passed >= 30 else 1))
    cluster.wait(monkeypatch)
    assert cluster.passed == 30
    said = "daemonset.apps/pacto-node-agent (1 of 2 available, which is ready for 30 s)"
    assert cluster.said == [f"waiting for {said}"]
