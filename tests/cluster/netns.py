# SPDX-License-Identifier: MIT
"""The cluster's network: one namespace per node and one for the control plane, joined by a bridge.

Nothing of it is in the machine's own network namespace, and no namespace has a default route.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.cluster.layout import CONTROL_PLANE_ADDRESS, SERVICES, Cluster, ClusterError, Node
from tests.cluster.process import Process, wait_until

NAMESPACES: Final = Path("/run/netns")


def ip(*arguments: str, exists_ok: bool = False) -> None:
    """Run `ip`; with exists_ok what is there already is no error, so that a second `up` converges."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode and not (exists_ok and "File exists" in done.stderr):
        raise ClusterError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def exists(netns: str) -> bool:
    """Whether the namespace is there."""
    return (NAMESPACES / netns).exists()


def sysctl(netns: str, setting: str) -> None:
    """Set a kernel parameter of the namespace."""
    command = ["nsenter", f"--net={NAMESPACES / netns}", "sysctl", "-qw", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"sysctl {setting}: {done.stderr.strip()}")


def create(netns: str) -> None:
    """A namespace with loopback and forwarding."""
    if not exists(netns):
        ip("netns", "add", netns)
    ip("-n", netns, "link", "set", "lo", "up")
    sysctl(netns, "net.ipv4.ip_forward=1")


def control_plane(cluster: Cluster) -> None:
    """The control plane's namespace: a bridge that holds its address and takes the nodes' ports.

    A bridge also where no node is: some kernels have no dummy device.
    """
    create(cluster.netns)
    if not has_link(cluster.netns, "nodes"):
        ip("-n", cluster.netns, "link", "add", "nodes", "type", "bridge")
    ip("-n", cluster.netns, "addr", "replace", f"{CONTROL_PLANE_ADDRESS}/24", "dev", "nodes")
    ip("-n", cluster.netns, "link", "set", "nodes", "up")


def has_link(netns: str, device: str) -> bool:
    """Whether the namespace has this device."""
    command = ["ip", "-n", netns, "link", "show", "dev", device]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def node(node: Node) -> None:
    """The node's namespace, its cable to the bridge, and routes between it and every other node."""
    cluster, number = node.cluster, node.number
    create(node.netns)
    if not has_link(node.netns, "eth0"):
        peer = ("peer", "name", "eth0", "netns", node.netns)
        ip("-n", cluster.netns, "link", "add", f"port{number}", "type", "veth", *peer)
    ip("-n", cluster.netns, "link", "set", f"port{number}", "master", "nodes", "up")
    ip("-n", node.netns, "addr", "replace", f"{node.address}/24", "dev", "eth0")
    ip("-n", node.netns, "link", "set", "eth0", "up")
    # kube-proxy rewrites traffic to a ClusterIP, but only what has a route gets that far
    ip("-n", node.netns, "route", "replace", SERVICES, "dev", "eth0")
    ip("-n", cluster.netns, "route", "replace", node.pods, "via", node.address)
    # no kube-proxy runs beside the API server: its webhook calls go through the first node's
    ip("-n", cluster.netns, "route", "add", SERVICES, "via", node.address, exists_ok=True)
    for other in cluster.nodes():
        if other.number != number and exists(other.netns):
            ip("-n", node.netns, "route", "replace", other.pods, "via", other.address)
            ip("-n", other.netns, "route", "replace", node.pods, "via", node.address)


def remove(netns: str) -> None:
    """End what still runs in a namespace that is ours by name, and remove the namespace."""
    if not exists(netns):
        return

    def ended() -> bool:
        pids = subprocess.run(
            ["ip", "netns", "pids", netns], capture_output=True, text=True, check=False
        ).stdout.split()
        left = [process for process in map(Process.of, map(int, pids)) if process]
        for process in left:
            process.kill()
        return not left

    wait_until(ended, 60)
    ip("netns", "del", netns)


def of_cluster(cluster: Cluster) -> list[str]:
    """The cluster's namespaces, also those whose records an interruption lost."""
    if not NAMESPACES.is_dir():
        return []
    names = [path.name for path in NAMESPACES.iterdir()]
    return sorted(name for name in names if name == cluster.netns or name.startswith(f"{cluster.netns}_"))
