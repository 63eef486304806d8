# SPDX-License-Identifier: MIT
"""The node agent on real nodes: what it publishes, with what rights, and what the policy refuses it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import pytest

from kubectl_pacto.controller.manifests import agent_objects
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node import CollectionState, Listener
from kubectl_pacto.model.node_codec import KIND
from tests.cluster.answers import FORBIDDEN, OK, answer, answer_to_replace
from tests.cluster.api import Api, ApiError, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.cluster.manifests import container, file_probe, pod
from tests.cluster_agent.conftest import Agents

pytestmark = pytest.mark.cluster
LEASES = "coordination.k8s.io/v1"


def started(live: Live, namespace: str, name: str) -> Object | None:
    """A pod once it is Ready."""
    found = live.api.get("v1", "Pod", name, namespace)
    conditions = found["status"].get("conditions", []) if found else []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return found if ready else None


def is_complete(agents: Agents, node: str, uid: str) -> bool:
    """Whether a node's object has a complete view of a pod."""
    view = agents.pod_view(node, uid)
    return view is not None and view.complete


def serves(agents: Agents, node: str, uid: str) -> bool:
    """Whether a pod is seen to listen on its port for IPv4."""
    view = agents.pod_view(node, uid)
    wanted = (Listener("0.0.0.0", 8080), Listener("::", 8080, v6only=False))
    return view is not None and any(one in view.listeners for one in wanted)


def test_every_node_publishes_a_view_that_its_lease_vouches_for(agents: Agents) -> None:
    for node in agents.live.nodes:
        view = agents.view(node)
        assert view is not None
        assert (view.name, view.node_name, view.collection.state) == (node, node, CollectionState.RUNNING)
        assert view.node.mapper == "iter"
        lease = agents.lease(node)
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == node
        assert lease["spec"]["leaseDurationSeconds"] == 3


def test_a_heartbeat_moves_while_a_quiet_object_stays(agents: Agents, wait_for: WaitFor) -> None:
    node = agents.live.nodes[0]

    def heartbeat() -> str:
        lease = agents.lease(node)
        return "" if lease is None else str(lease["spec"]["renewTime"])

    def version() -> str:
        raw = agents.raw(node)
        assert raw is not None
        return str(raw["metadata"]["resourceVersion"])

    def moved_alone() -> bool:
        # what else runs on the node may change the object between two heartbeats, not between all of them
        before, at = version(), heartbeat()
        wait_for(lambda: heartbeat() > at, 60, "the Lease is renewed")
        return version() == before

    wait_for(moved_alone, 60, "a heartbeat without a new version of the object")


def test_a_silent_ready_pod_and_a_serving_one_are_told_apart_on_their_node_alone(
    agents: Agents, namespace: str, wait_for: WaitFor
) -> None:
    live = agents.live
    node, other = live.nodes
    for name in ("silent", "http"):
        one = container(name, readinessProbe=file_probe())
        live.api.create(pod(namespace, name, [one], nodeName=node))
    uids = {}
    for name in ("silent", "http"):
        made = wait_for(partial(started, live, namespace, name), 120, f"pod {name} is Ready")
        assert made is not None
        uids[name] = made["metadata"]["uid"]
    ready_at = time.monotonic()
    for uid in uids.values():
        wait_for(partial(is_complete, agents, node, uid), 90, f"the view of pod {uid} is complete")
    print(f"complete {time.monotonic() - ready_at:.1f} s after both pods were Ready")
    wait_for(partial(serves, agents, node, uids["http"]), 90, "the listener of the serving pod is seen")
    silent = agents.pod_view(node, uids["silent"])
    assert silent is not None
    assert (silent.complete, silent.listeners) == (True, ())
    assert agents.pod_view(other, uids["silent"]) is None
    assert agents.pod_view(other, uids["http"]) is None


def test_the_agents_namespace_and_pods_are_as_confined_as_the_specification_says(agents: Agents) -> None:
    (one, *_) = agents.live.pods(agents.namespace)
    security = one["spec"]["containers"][0]["securityContext"]
    assert security["capabilities"] == {"add": ["BPF", "PERFMON", "SYS_PTRACE"], "drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] is True
    assert "hostNetwork" not in one["spec"]


def put_back(agents: Agents, api: Api, version: str, kind: str, node: str) -> tuple[int, str]:
    """What a holder of `api` is answered who puts a node's object back."""
    return answer_to_replace(api, agents.live.api, version, kind, agents.namespace, node)


class TestPolicy:
    """An agent writes the objects of its own node, and nothing else."""

    def test_its_own_object_and_lease_pass_and_those_of_another_node_do_not(self, agents: Agents) -> None:
        mine, other = agents.live.nodes
        api = agents.live.as_token(agents.token_of(mine))
        for version, kind in ((API_VERSION, KIND), (LEASES, "Lease")):
            assert put_back(agents, api, version, kind, other)[0] == FORBIDDEN, f"{kind} of another node"
            status, said = put_back(agents, api, version, kind, mine)
            assert status == OK, said

    def test_it_cannot_create_an_object_for_a_node_that_has_none(self, agents: Agents) -> None:
        api = agents.live.as_token(agents.token_of(agents.live.nodes[0]))
        raw = {
            "apiVersion": LEASES,
            "kind": "Lease",
            "metadata": {"name": "node-z", "namespace": agents.namespace},
        }
        path = agents.live.api.path(LEASES, "Lease", agents.namespace)
        assert answer(api, "POST", path, raw)[0] == FORBIDDEN

    def test_a_token_without_the_node_claim_writes_nothing(self, agents: Agents) -> None:
        api = agents.live.as_token(agents.live.token(agents.namespace, agent_objects.NAME))
        node = agents.live.nodes[0]
        for version, kind in ((API_VERSION, KIND), (LEASES, "Lease")):
            status, said = put_back(agents, api, version, kind, node)
            assert status == FORBIDDEN
            assert "names no node" in said

    @pytest.mark.parametrize(
        ("method", "version", "kind", "where"),
        [
            ("GET", "v1", "Pod", ""),
            ("GET", "v1", "Pod", "kube-system"),
            ("GET", "v1", "Secret", "agent"),
            ("GET", "v1", "ConfigMap", "agent"),
            ("GET", "v1", "Node", ""),
            ("GET", API_VERSION, KIND, "agent"),
            ("GET", LEASES, "Lease", "kube-system"),
        ],
    )
    def test_it_reads_nothing_beyond_its_objects(
        self, agents: Agents, method: str, version: str, kind: str, where: str
    ) -> None:
        api = agents.live.as_token(agents.token_of(agents.live.nodes[0]))
        namespace = agents.namespace if where == "agent" else where
        assert answer(api, method, agents.live.api.path(version, kind, namespace))[0] == FORBIDDEN

    def test_it_deletes_not_even_its_own(self, agents: Agents) -> None:
        node = agents.live.nodes[0]
        api = agents.live.as_token(agents.token_of(node))
        path = agents.live.api.path(API_VERSION, KIND, agents.namespace, node)
        assert answer(api, "DELETE", path)[0] == FORBIDDEN


def test_an_object_that_breaks_the_schema_is_refused(agents: Agents) -> None:
    raw = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "broken", "namespace": agents.namespace},
        "nodeName": "broken",
        "collection": {"state": "Sleeping"},
    }
    with pytest.raises(ApiError, match="Sleeping"):
        agents.live.api.create(raw)


def test_with_the_iterators_two_capabilities_are_enough(agents: Agents, wait_for: WaitFor) -> None:
    values = replace(agents.values, mapper="iter")
    node = agents.live.nodes[0]
    before = agents.view(node)
    assert before is not None
    try:
        agents.roll_out(agent_objects.daemon_set(values))
        (one, *_) = agents.live.pods(agents.namespace)
        added = one["spec"]["containers"][0]["securityContext"]["capabilities"]["add"]
        assert added == ["BPF", "PERFMON"]

        def restarted() -> bool:
            view = agents.view(node)
            return (
                view is not None
                and view.collection.started_at != before.collection.started_at
                and view.collection.state is CollectionState.RUNNING
                and any(pod.complete for pod in view.pods)
            )

        wait_for(restarted, 90, "the new agent publishes a running view with complete pods")
    finally:
        agents.roll_out(agent_objects.daemon_set(agents.values))


def test_a_deleted_object_is_written_again(agents: Agents, wait_for: WaitFor) -> None:
    node = agents.live.nodes[1]
    agents.live.api.delete(API_VERSION, KIND, node, agents.namespace)
    wait_for(lambda: agents.raw(node), 90, "the object of the node is back")
