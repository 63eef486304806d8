# SPDX-License-Identifier: MIT
"""The DaemonSet on a real API server: made, rolled by its own bound, left alone, removed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kubectl_pacto.controller.connection import connect
from kubectl_pacto.controller.manifests.agent_objects import before_the_agent
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.controller.node_agent import NodeAgents
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiConflict
from tests.cluster.api import Api, Object
from tests.cluster.live import Live

pytestmark = pytest.mark.cluster
VALUES = NodeAgentValues(
    namespace="agents-managed", resources={"requests": {"cpu": "0.05", "memory": "65536Ki"}}
)


@pytest.fixture
def found(api: Api) -> Object:
    """The namespace with what the chart makes."""
    api.apply(*before_the_agent(VALUES))
    return {}


def daemon_set(api: Api) -> Object | None:
    """The DaemonSet, if there is one."""
    return api.get("apps/v1", "DaemonSet", "pacto-node-agent", VALUES.namespace)


def ensure(agents: NodeAgents, client: Client) -> None:
    """As the operator does it: again where the DaemonSet's own controller was first with its status."""
    for _ in range(20):
        try:
            agents.ensure(client)
        except ApiConflict:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("a conflict each time")


def test_it_comes_changes_and_goes(api: Api, api_server: Live, found: Object) -> None:
    client = connect(str(api_server.kubeconfig)).client()
    agents = NodeAgents(VALUES, VALUES.namespace)
    ensure(agents, client)
    made = daemon_set(api)
    assert made is not None
    assert made["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "10%"
    before = client.requests
    for _ in range(3):
        agents.ensure(client)
    assert client.requests - before == 3  # reads alone
    ensure(NodeAgents(VALUES, VALUES.namespace), client)
    again = daemon_set(api)
    assert again is not None
    # quantities that the server spells its own way are no change
    assert again["metadata"]["generation"] == made["metadata"]["generation"]
    ensure(NodeAgents(replace(VALUES, mapper="iter"), VALUES.namespace), client)
    changed = daemon_set(api)
    assert changed is not None
    capabilities = changed["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]
    assert capabilities["add"] == ["BPF", "PERFMON"]
    ensure(NodeAgents(None, VALUES.namespace), client)
    left = daemon_set(api)
    assert left is None or "deletionTimestamp" in left["metadata"]
    client.close()


def test_what_a_vanished_node_left_goes(api: Api, api_server: Live, found: Object, machines: object) -> None:
    client = connect(str(api_server.kubeconfig)).client()
    now = [0.0]
    agents = NodeAgents(VALUES, VALUES.namespace, lambda: now[0])
    labels = {"app.kubernetes.io/name": "pacto-node-agent", "app.kubernetes.io/part-of": "pacto"}
    metadata = {"name": "long-gone", "namespace": VALUES.namespace, "labels": labels}
    group = "pacto.trianalab.io/v1alpha1"
    api.create(
        {
            "apiVersion": group,
            "kind": "NodeRuntimeObservation",
            "metadata": metadata,
            "nodeName": "long-gone",
            "collection": {"state": "Running"},
        }
    )
    api.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {"holderIdentity": "long-gone"},
        }
    )
    assert agents.clean(client) == 0
    now[0] = 600.0
    assert agents.clean(client) == 2
    assert api.get(group, "NodeRuntimeObservation", "long-gone", VALUES.namespace) is None
    client.close()
