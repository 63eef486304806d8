# SPDX-License-Identifier: MIT
"""The DaemonSet comes, changes and goes with the settings; vanished nodes leave nothing for long."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from kubectl_pacto.controller.manifests.agent_objects import desired
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.controller.node_agent import NodeAgents
from kubectl_pacto.kube.client import METADATA_LIST
from kubectl_pacto.kube.errors import ApiForbidden, ApiNotFound
from kubectl_pacto.model.node import AGENT_LABELS, AGENT_NAMESPACE

VALUES = NodeAgentValues()
PATH = f"/apis/apps/v1/namespaces/{AGENT_NAMESPACE}/daemonsets"
OWN = f"{PATH}/pacto-node-agent"
OBJECTS = f"/apis/pacto.trianalab.io/v1alpha1/namespaces/{AGENT_NAMESPACE}/noderuntimeobservations"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{AGENT_NAMESPACE}/leases"
Raw = dict[str, Any]


class Api:
    """A client over a dict, that fills in what a server fills in."""

    def __init__(self) -> None:
        self.objects: dict[str, Raw] = {}
        self.nodes = ["a", "b"]
        self.writes: list[str] = []
        self.forbidden = False
        self.received = 0

    def get(self, path: str, *, accept: str = "") -> Raw:
        found = self._get(path)
        if accept == METADATA_LIST:
            found["items"] = [{"metadata": item["metadata"]} for item in found["items"]]
        return found

    def _get(self, path: str) -> Raw:
        if self.forbidden:
            raise ApiForbidden(method="GET", path=path, problem="no")
        bare = path.partition("?")[0]
        if bare == "/api/v1/nodes":
            return listed([{"metadata": {"name": name}} for name in self.nodes])
        if bare in (OBJECTS, LEASES):
            return listed([raw for key, raw in self.objects.items() if key.startswith(f"{bare}/")])
        if bare not in self.objects:
            raise ApiNotFound(method="GET", path=path, problem="no")
        return copy.deepcopy(self.objects[bare])

    def post(self, path: str, body: Raw) -> Raw:
        self.writes.append(f"POST {path}")
        made = copy.deepcopy(body)
        made["metadata"].update(uid="u1", generation=1)
        made["spec"]["revisionHistoryLimit"] = 10
        made["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
        self.objects[f"{path}/{body['metadata']['name']}"] = made
        return made

    def put(self, path: str, body: Raw) -> Raw:
        self.writes.append(f"PUT {path}")
        before, made = self.objects[path], copy.deepcopy(body)
        made["spec"]["revisionHistoryLimit"] = 10
        made["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
        made["metadata"]["generation"] = before["metadata"]["generation"] + (made["spec"] != before["spec"])
        self.objects[path] = made
        return copy.deepcopy(made)

    def delete(self, path: str, body: Raw | None = None) -> Raw:
        self.writes.append(f"DELETE {path}")
        assert body == {"preconditions": {"uid": self.objects[path]["metadata"]["uid"]}}
        del self.objects[path]
        return {}

    def leave(self, *names: str) -> None:
        """What agents of these nodes wrote."""
        for name in names:
            metadata = {"name": name, "uid": name}
            self.objects[f"{OBJECTS}/{name}"] = {"metadata": {**metadata, "labels": dict(AGENT_LABELS)}}
            self.objects[f"{LEASES}/{name}"] = {"metadata": metadata, "spec": {"holderIdentity": name}}


def listed(items: list[Raw]) -> Raw:
    return {"metadata": {"resourceVersion": "1"}, "items": items}


@pytest.fixture
def api() -> Any:
    return Api()


def agents(values: NodeAgentValues | None = VALUES, clock: Any = None) -> NodeAgents:
    return NodeAgents(values, AGENT_NAMESPACE, clock or (lambda: 0.0))


def test_it_is_created_once(api: Any) -> None:
    one = agents()
    for _ in range(3):
        one.ensure(api)
    assert api.writes == [f"POST {PATH}"]


def test_after_a_restart_it_is_written_once_and_stays_the_same(api: Any) -> None:
    agents().ensure(api)
    before = api.objects[OWN]["metadata"]["generation"]
    one = agents()
    for _ in range(3):
        one.ensure(api)
    assert api.writes[1:] == [f"PUT {OWN}"]
    assert api.objects[OWN]["metadata"]["generation"] == before


def test_changed_values_change_it(api: Any) -> None:
    agents().ensure(api)
    changed = agents(replace(VALUES, publish_interval="10s"))
    for _ in range(3):
        changed.ensure(api)
    assert api.writes[1:] == [f"PUT {OWN}"]
    container = api.objects[OWN]["spec"]["template"]["spec"]["containers"][0]
    assert "10s" in container["args"]
    assert api.objects[OWN]["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%"}


def test_what_somebody_changed_by_hand_is_changed_back(api: Any) -> None:
    one = agents()
    one.ensure(api)
    api.objects[OWN]["spec"]["template"]["spec"]["hostPID"] = False
    api.objects[OWN]["metadata"]["generation"] += 1
    one.ensure(api)
    assert api.objects[OWN]["spec"]["template"]["spec"]["hostPID"] is True


def test_turned_off_it_goes(api: Any) -> None:
    agents().ensure(api)
    agents(None).ensure(api)
    assert OWN not in api.objects
    agents(None).ensure(api)


def test_turned_off_without_rights_or_namespace_is_no_error(api: Any) -> None:
    api.forbidden = True
    agents(None).ensure(api)


def test_one_that_somebody_else_runs_is_left_alone(api: Any) -> None:
    api.objects[OWN] = {"metadata": {"name": "pacto-node-agent", "uid": "x"}, "spec": {}}
    agents().ensure(api)
    agents(None).ensure(api)
    assert api.writes == []


def test_the_marks_do_not_reach_the_pods() -> None:
    made = desired(VALUES)
    assert made["spec"]["template"]["metadata"] == {"labels": dict(AGENT_LABELS)}


def test_what_a_vanished_node_left_goes_after_ten_minutes(api: Any) -> None:
    now = [0.0]
    one = agents(clock=lambda: now[0])
    api.leave("a", "gone")
    assert one.clean(api) == 0
    now[0] = 599.0
    assert one.clean(api) == 0
    now[0] = 600.0
    assert one.clean(api) == 2
    assert sorted(api.objects) == sorted([f"{OBJECTS}/a", f"{LEASES}/a"])


def test_a_node_that_comes_back_starts_the_ten_minutes_over(api: Any) -> None:
    now = [0.0]
    one = agents(clock=lambda: now[0])
    api.leave("c")
    one.clean(api)
    api.nodes.append("c")
    now[0] = 500.0
    one.clean(api)
    api.nodes.remove("c")
    now[0] = 700.0
    assert one.clean(api) == 0
    now[0] = 1300.0
    assert one.clean(api) == 2


def test_nothing_goes_when_no_node_is_listed_at_all(api: Any) -> None:
    now = [0.0]
    one = agents(clock=lambda: now[0])
    api.leave("c")
    api.nodes.clear()
    one.clean(api)
    now[0] = 10_000.0
    assert one.clean(api) == 0


def test_leases_and_objects_of_others_stay(api: Any) -> None:
    now = [0.0]
    one = agents(clock=lambda: now[0])
    api.objects[f"{LEASES}/leader"] = {
        "metadata": {"name": "leader", "uid": "x"}, "spec": {"holderIdentity": "pod-1"}
    }  # fmt: skip
    api.objects[f"{OBJECTS}/x"] = {"metadata": {"name": "x", "uid": "x"}}
    one.clean(api)
    now[0] = 10_000.0
    assert one.clean(api) == 0


def test_agents_that_you_run_are_yours_to_clean(api: Any) -> None:
    api.leave("gone")
    assert agents(None).clean(api) == 0
