# SPDX-License-Identifier: MIT
"""What the API server keeps beside a node's object: who owns its fields, in a record that does not grow."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kubectl_pacto.controller.connection import connect
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node import Listener, NodeRuntimeObservation, PodView
from kubectl_pacto.model.node_codec import KIND, encode_node
from pacto_agent.sinks.kubernetes import KubernetesSink
from tests.cluster.live import Live

pytestmark = pytest.mark.cluster
NAMESPACE = "ownership"


@pytest.fixture
def sink(served: Live) -> Iterator[KubernetesSink]:
    """The agent's own way to write, on a real API server."""
    served.kubectl("create", "namespace", NAMESPACE)
    client = connect(str(served.kubeconfig)).client()
    yield KubernetesSink(client, namespace=NAMESPACE, name="node-a", interval=30.0)
    client.close()
    served.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def view(pods: int) -> NodeRuntimeObservation:
    """A node with so many pods."""
    listeners = tuple(Listener("0.0.0.0", 8000 + number) for number in range(10))
    views = tuple(PodView(f"uid-{number:03}", 1.0, True, (), listeners) for number in range(pods))
    return NodeRuntimeObservation("node-a", "node-a", namespace=NAMESPACE, last_published=1.0, pods=views)


def test_the_record_of_ownership_does_not_grow_with_the_view(served: Live, sink: KubernetesSink) -> None:
    sizes = []
    for pods in (1, 200):
        sink.put(encode_node(view(pods)))
        raw = served.api.get(API_VERSION, KIND, "node-a", NAMESPACE)
        assert raw is not None
        assert len(raw["pods"]) == pods
        (entry,) = raw["metadata"]["managedFields"]
        assert entry["fieldsV1"]["f:pods"] == {}, "a list that is atomic is one field"
        sizes.append(len(json.dumps(entry)))
    assert sizes[0] == sizes[1]
