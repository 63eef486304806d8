# SPDX-License-Identifier: MIT
"""The agent as a DaemonSet: three capabilities, and each node's pods seen on that node alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import manifests
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.support.require import require

pytestmark = pytest.mark.cluster
OPTIONS = (
    "--sink",
    "file",
    "--output",
    "/out/node.json",
    "--publish-interval",
    "1s",
    "--resync-interval",
    "5s",
)
# CapEff of exactly PERFMON, BPF and SYS_PTRACE
CAPABILITIES = 1 << 38 | 1 << 39 | 1 << 19


def objects(cluster: Live, namespace: str) -> dict[str, Any]:
    """Each node's object, by node, as its agent wrote it last."""
    found = {}
    for pod in cluster.pods(namespace, "app=agent"):
        text = cluster.kubectl(
            "exec", "-n", namespace, pod["metadata"]["name"], "--", "cat", "/out/node.json", check=False
        ).stdout
        for item in json.loads(text)["items"] if text else []:
            if item["kind"] == "NodeRuntimeObservation":
                found[pod["spec"]["nodeName"]] = item
    return found


def views(cluster: Live, namespace: str, uid: str) -> dict[str, Any]:
    """What each node says of one pod; nothing where it says nothing."""
    return {
        node: view
        for node, item in objects(cluster, namespace).items()
        for view in item["pods"]
        if view["uid"] == uid
    }


def test_a_ready_pod_that_never_listens_is_seen_on_its_node_alone(
    cluster: Live, namespace: str, wait_for: WaitFor
) -> None:
    """Beside one that does listen, on the other node."""
    require("cluster", "" if Path("/sys/kernel/btf/vmlinux").exists() else "no /sys/kernel/btf/vmlinux")
    near, far = cluster.nodes
    probe = manifests.file_probe()
    cluster.api.apply(
        manifests.privileged(namespace),
        manifests.agent(namespace, *OPTIONS),
        manifests.pod(
            namespace, "silent", [manifests.container("silent", readinessProbe=probe)], nodeName=near
        ),
        manifests.pod(namespace, "http", [manifests.container("http", readinessProbe=probe)], nodeName=far),
    )
    wait_for(
        lambda: sum(map(manifests.ready, cluster.pods(namespace))) == 4, 180, "two agents and two pods ready"
    )
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.pods(namespace)}

    def seen(name: str, node: str, ports: list[int]) -> bool:
        found = views(cluster, namespace, uids[name])
        listening = [one["port"] for one in found.get(node, {}).get("listeners", [])]
        return list(found) == [node] and found[node]["complete"] and listening == ports

    wait_for(lambda: seen("silent", near, []), 90, "the silent pod complete and without a listener")
    wait_for(lambda: seen("http", far, [8080]), 90, "the other pod with its listener")
    for node, item in objects(cluster, namespace).items():
        assert item["collection"]["state"] == "Running", item["collection"]
        assert item["nodeName"] == node
    # the pod's first process is the pause of hostPID's host: look at the agent itself
    for pod in cluster.pods(namespace, "app=agent"):
        status = cluster.in_pod(namespace, pod["metadata"]["name"], "cat", "/proc/self/status")
        (effective,) = [line for line in status.splitlines() if line.startswith("CapEff")]
        assert int(effective.split()[1], 16) == CAPABILITIES
