# SPDX-License-Identifier: MIT
"""The cluster is one: nodes, pods in namespaces and cgroups of their own, logs, exec, Services."""

from __future__ import annotations

import functools
import time

import pytest

from tests.cluster import manifests
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.images import workloads

pytestmark = pytest.mark.cluster


def web(namespace: str, replicas: int) -> list[dict[str, object]]:
    """HTTP pods, spread over the nodes, behind a Service."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    container = manifests.container("http", readinessProbe=manifests.http_probe())
    deployment = manifests.deployment(
        namespace, "web", [container], replicas, topologySpreadConstraints=[spread]
    )
    return [deployment, manifests.service(namespace, "web")]


def logged(cluster: Live, namespace: str, pod: str, words: str) -> bool:
    """Whether a pod's log has these words: what it says reaches its log a moment later."""
    return words in cluster.kubectl("logs", "-n", namespace, pod, check=False).stdout


def test_two_nodes_are_ready(cluster: Live) -> None:
    """Each is a node of its own name."""
    found = cluster.api.items("v1", "Node")
    assert {node["metadata"]["name"] for node in found if manifests.ready(node)} >= set(cluster.nodes)
    assert len(cluster.nodes) == 2


def test_a_deployment_becomes_ready_on_both_nodes(cluster: Live, namespace: str, wait_for: WaitFor) -> None:
    """Its pods have network namespaces and kubelet-made cgroups of their own; logs and exec work."""
    begin = time.monotonic()
    cluster.api.apply(*web(namespace, 2))
    wait_for(lambda: sum(map(manifests.ready, cluster.pods(namespace))) == 2, 120, "two pods ready")
    print(f"two pods ready in {time.monotonic() - begin:.1f} s")
    pods = cluster.pods(namespace)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(cluster.nodes)
    namespaces = set()
    for pod in pods:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        wait_for(functools.partial(logged, cluster, namespace, name, "listening"), 30, f"a line of {name}")
        namespaces.add(cluster.in_pod(namespace, name, "readlink", "/proc/self/ns/net"))
        assert uid in cluster.in_pod(namespace, name, "cat", "/proc/self/cgroup").replace("_", "-")
    hosts = {cluster.on_node(node, "readlink", "/proc/self/ns/net").stdout for node in cluster.nodes}
    assert len(namespaces) == 2
    assert not namespaces & hosts


def test_a_cluster_ip_answers_from_both_nodes(cluster: Live, namespace: str, wait_for: WaitFor) -> None:
    """One server, asked from a pod beside it and from a pod on the other node."""
    near, far = cluster.nodes
    server = manifests.pod(
        namespace, "web", [manifests.container("http", readinessProbe=manifests.http_probe())], nodeName=near
    )
    (made, *_) = cluster.api.apply(manifests.service(namespace, "web"), server)
    target = f"{made['spec']['clusterIP']}:80"
    for node in (near, far):
        client = manifests.container("client", "client", target, port=0)
        cluster.api.apply(manifests.pod(namespace, f"client-{node}", [client], nodeName=node))
    for node in (near, far):
        said = functools.partial(logged, cluster, namespace, f"client-{node}", "connected")
        wait_for(said, 90, f"a connection from {node}")


@pytest.mark.parametrize("workload", [name for name in workloads.SMALL if name != "client"])
def test_each_workload_passes_a_probe_that_looks_at_no_socket(
    cluster: Live, namespace: str, wait_for: WaitFor, workload: str
) -> None:
    """And each but one listens."""
    container = manifests.container(workload, readinessProbe=manifests.file_probe())
    cluster.api.apply(manifests.pod(namespace, workload, [container]))
    wait_for(
        lambda: all(map(manifests.ready, cluster.pods(namespace))) and cluster.pods(namespace),
        90,
        "a ready pod",
    )
    # 0A: LISTEN, 1F90: port 8080
    sockets = cluster.in_pod(namespace, workload, "cat", "/proc/net/tcp")
    assert (":1F90 00000000:0000 0A" in sockets) == (workload != "silent")


def test_real_servers_listen(cluster: Live, namespace: str, wait_for: WaitFor) -> None:
    """nginx, redis and postgresql from Debian."""
    cluster.load(workloads.real_archive())
    ports = {"nginx": 80, "redis": 6379, "postgresql": 5432}
    for name, port in ports.items():
        probe = {"tcpSocket": {"port": port}, "periodSeconds": 1}
        container = manifests.container(name, port=port, readinessProbe=probe)
        cluster.api.apply(manifests.pod(namespace, name, [container]))
    wait_for(
        lambda: sum(map(manifests.ready, cluster.pods(namespace))) == len(ports), 180, "three servers ready"
    )


def test_a_condition_that_never_holds_shows_what_was_there(
    cluster: Live, namespace: str, wait_for: WaitFor, request: pytest.FixtureRequest
) -> None:
    """The objects, events and logs are in the failure."""
    cluster.api.apply(manifests.pod(namespace, "quiet", [manifests.container("silent", port=0)]))
    wait_for(lambda: cluster.pods(namespace)[0]["status"].get("phase") == "Running", 90, "a running pod")
    with pytest.raises(pytest.fail.Exception) as failure:
        wait_for(lambda: False, 0.2, "the impossible")
    for part in ("the impossible", "pod/quiet", "Scheduled", "logs of quiet"):
        assert part in str(failure.value)
