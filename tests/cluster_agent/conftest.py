# SPDX-License-Identifier: MIT
"""The node agent as it is installed: its own objects, in a namespace of its own, on both nodes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from kubectl_pacto.controller.generate import MANIFESTS
from kubectl_pacto.controller.manifests import agent_objects
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from kubectl_pacto.model.node_codec import KIND, decode_node
from tests.cluster.api import Object
from tests.cluster.fixtures import wait_until
from tests.cluster.live import Live
from tests.images import runtime

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
INTERVAL = "1s"


@dataclass(frozen=True)
class Agents:
    """The agents of a cluster and what they publish."""

    live: Live
    values: NodeAgentValues

    @property
    def namespace(self) -> str:
        """Where they run."""
        return self.values.namespace

    def pod_on(self, node: str) -> str:
        """The name of the agent's pod on a node; empty while there is none that runs."""
        for pod in self.live.pods(self.namespace):
            ready = any(one["ready"] for one in pod["status"].get("containerStatuses", []))
            if pod["spec"].get("nodeName") == node and ready and "deletionTimestamp" not in pod["metadata"]:
                return str(pod["metadata"]["name"])
        return ""

    def token_of(self, node: str) -> str:
        """The projected token of the agent on a node."""
        return self.live.in_pod(self.namespace, self.pod_on(node), "cat", TOKEN).strip()

    def raw(self, node: str) -> Object | None:
        """The object of a node as the API server has it."""
        return self.live.api.get(API_VERSION, KIND, node, self.namespace)

    def view(self, node: str) -> NodeRuntimeObservation | None:
        """The same, decoded."""
        raw = self.raw(node)
        return decode_node(raw) if raw else None

    def pod_view(self, node: str, uid: str) -> PodView | None:
        """What a node's object says of a pod."""
        view = self.view(node)
        return next((pod for pod in view.pods if pod.uid == uid), None) if view else None

    def lease(self, node: str) -> Object | None:
        """The heartbeat of a node."""
        return self.live.api.get("coordination.k8s.io/v1", "Lease", node, self.namespace)

    def roll_out(self, daemon_set: Object) -> None:
        """Apply a DaemonSet and wait until its pods are the only ones, one on each node."""
        self.live.kubectl("apply", "-f", "-", text=json.dumps(daemon_set))
        self.live.kubectl(
            "rollout", "status", "-n", self.namespace, f"daemonset/{agent_objects.NAME}", "--timeout=180s"
        )


def crd() -> Object:
    """The CRD as the package has it."""
    text = (Path(MANIFESTS) / "crds" / "noderuntimeobservations.yaml").read_text(encoding="utf-8")
    found: Object = yaml.safe_load(text)
    return found


@pytest.fixture(scope="module")
def agents(cluster: Live) -> Iterator[Agents]:
    """Installed in the order that the chart and the plugin use; removed at the end."""
    values = NodeAgentValues(
        namespace=f"agent-{secrets.token_hex(3)}",
        image=runtime.NAME,
        image_pull_policy="Never",
        publish_interval=INTERVAL,
        resync_interval="5s",
    )
    made = Agents(cluster, values)
    guards = agent_objects.before_the_agent(values)
    try:
        for one in (crd(), *guards):
            cluster.kubectl("apply", "-f", "-", text=json.dumps(one))
        cluster.kubectl(
            "wait", "--for=condition=Established", f"crd/{crd()['metadata']['name']}", "--timeout=30s"
        )
        made.roll_out(agent_objects.daemon_set(values))
        for node in cluster.nodes:
            assert wait_until(partial(made.lease, node), 90), cluster.describe(made.namespace)
        yield made
    finally:
        for one in (*reversed(guards), crd()):
            cluster.kubectl(
                "delete", one["kind"], one["metadata"]["name"], "--ignore-not-found", "--timeout=60s",
                *(["-n", one["metadata"]["namespace"]] if "namespace" in one["metadata"] else []),
                check=False,
            )  # fmt: skip
