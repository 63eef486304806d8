# SPDX-License-Identifier: MIT
"""A node from outside: its start in namespaces of its own, commands in it, images, its end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster import cgroups, netns, node_config, pki, process
from tests.cluster.api import Api, ApiError
from tests.cluster.layout import REPOSITORY, Cluster, ClusterError, Node
from tests.cluster.node_config import SOCKET
from tests.images import base

READY_SECONDS: Final = 240  # of a machine that does other things, too
DAEMONS: Final = ("containerd", "kubelet", "proxy")
# Joins the node's cgroups before the namespaces are made, so that its cgroup namespace begins there.
JOIN: Final = 'while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"'
# --kill-child: who ends this one process ends the node's first process and so everything in the node.
UNSHARE: Final = (
    "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount",
    "--mount-proc",
    "--cgroup",
    "--uts",
)


def add(cluster: Cluster, name: str) -> Node:
    """Start a node and wait until it is Ready; one that runs is left alone."""
    if not process.running(cluster, "apiserver"):
        raise ClusterError(f"cluster {cluster.name} is not up")
    node = claim(cluster, name)
    (cluster.state / "log").mkdir(exist_ok=True)
    subject = pki.Subject(name, f"system:node:{name}", "system:nodes", (f"DNS:{name}", f"IP:{node.address}"))
    pki.certificates(cluster, [subject])
    base.pause_archive(cluster.state / "pause.tar")
    node_config.write(node)
    netns.node(node)
    joins = [str(path) for path in cgroups.create(node.netns)]
    init = [sys.executable, "-m", "tests.cluster.node_init", cluster.name, name]
    process.start(
        cluster, name, node.netns, ["sh", "-c", JOIN, name, *joins, "--", *UNSHARE, *init], REPOSITORY
    )
    wait_ready(node)
    return node


def claim(cluster: Cluster, name: str) -> Node:
    """The node's record with the next free number, or the one it has."""
    node = Node(cluster, name)
    if not (node.state / "number").exists():
        taken = {other.number for other in cluster.nodes()}
        node.state.mkdir(parents=True, exist_ok=True)
        number = next(number for number in range(1, 200) if number not in taken)
        (node.state / "number").write_text(str(number))
    return node


def wait_ready(node: Node) -> None:
    """Until the API server calls the node Ready; a daemon that ends meanwhile is reported at once."""
    api = Api.from_kubeconfig(node.cluster.kubeconfig)
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready(api, node.name):
        if not process.running(node.cluster, node.name):
            raise ClusterError(f"node {node.name} ended{ended_text(node)}")
        if time.monotonic() > deadline:
            raise ClusterError(f"node {node.name} is not Ready{ended_text(node)}")
        time.sleep(process.POLL_SECONDS)


def is_ready(api: Api, name: str) -> bool:
    """The node's Ready condition."""
    try:
        found = api.get("v1", "Node", name)
    except (OSError, ApiError):
        return False
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def ended_text(node: Node) -> str:
    """The tails of the logs that can tell why."""
    logs = [node.cluster.log(node.name), *(node.cluster.log(f"{node.name}-{name}") for name in DAEMONS)]
    return "".join(process.tail(log) for log in logs if log.exists() and log.stat().st_size)


def init_pid(node: Node) -> int:
    """The node's first process, by its number here."""
    outer = process.running(node.cluster, node.name)
    children = outer.children() if outer else []
    if not children:
        raise ClusterError(f"node {node.name} is not running{process.tail(node.cluster.log(node.name))}")
    return children[0]


def command(node: Node, arguments: Sequence[str]) -> list[str]:
    """A command line that runs in all of the node's namespaces."""
    return [
        "nsenter",
        f"--target={init_pid(node)}",
        "--net",
        "--pid",
        "--mount",
        "--cgroup",
        "--uts",
        "--",
        *arguments,
    ]


def load(node: Node, archive: Path) -> None:
    """Import an image archive; containerd reads it through a pipe, so any path of this machine will do."""
    importing = command(node, ["ctr", "-a", SOCKET, "-n", "k8s.io", "images", "import", "--digests", "-"])
    with archive.open("rb") as source:
        done = subprocess.run(importing, stdin=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{node.name} does not take {archive}: {done.stderr.strip()}")


def remove(node: Node) -> None:
    """End a node and forget everything about it, on this machine and at the API server."""
    stop(node)
    subprocess.run(["rm", "-rf", "--one-file-system", str(node.state)], check=True)
    if process.running(node.cluster, "apiserver"):
        Api.from_kubeconfig(node.cluster.kubeconfig).delete("v1", "Node", node.name)
        for other in node.cluster.nodes():
            netns.node(other)


def stop(node: Node) -> None:
    """End everything in the node; its network namespace and cgroups go with it."""
    if outer := process.running(node.cluster, node.name):
        inner = [process.Process.of(pid) for pid in outer.children()]
        outer.kill()
        if not process.wait_until(lambda: not any(child and child.alive for child in inner), 60):
            raise ClusterError(f"node {node.name}: its first process does not end")
    netns.remove(node.netns)
    for hierarchy in cgroups.hierarchies():
        group = hierarchy.path / node.netns
        if group.exists() and not cgroups.remove(group):
            raise ClusterError(f"cgroup {group} cannot be removed")
