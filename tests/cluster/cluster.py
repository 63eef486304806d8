# SPDX-License-Identifier: MIT
"""What the commands do, for the command line and for the fixtures alike."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import build, cgroups, control_plane, deps, netns, node, process
from tests.cluster.api import Api
from tests.cluster.layout import Cluster, ClusterError, Node, cache


@contextmanager
def locked(cluster: Cluster) -> Iterator[None]:
    """One command at a time changes a cluster. The state directory itself is the lock."""
    while True:
        cluster.state.mkdir(parents=True, exist_ok=True, mode=0o755)
        descriptor = os.open(cluster.state, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not same_directory(descriptor, cluster.state):
                continue  # `down` removed it while this one waited
            yield
            return
        finally:
            os.close(descriptor)


def same_directory(descriptor: int, path: Path) -> bool:
    """Whether the open directory is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def missing() -> str:
    """Why no cluster can run here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("go"):
        return "go is not on PATH"
    return deps.missing_text("cluster", "images")


def up(cluster: Cluster, version: str, owner: int | None = None) -> None:
    """Bring the control plane up. With an owner the cluster may be swept once that process is gone."""
    if absent := missing():
        raise ClusterError(absent)
    begin = time.monotonic()
    with locked(cluster):
        if owner and (found := process.Process.of(owner)):
            found.write(cluster.state / "owner")
        control_plane.up(cluster, version)
    print(f"control plane ready in {time.monotonic() - begin:.1f} s", flush=True)


def add_node(cluster: Cluster, name: str) -> Node:
    """Add a node and wait until it is Ready."""
    begin = time.monotonic()
    with locked(cluster):
        added = node.add(cluster, name)
    print(f"node {name} ready in {time.monotonic() - begin:.1f} s", flush=True)
    return added


def remove_node(cluster: Cluster, name: str) -> None:
    """End a node as if its machine had gone, and forget it."""
    with locked(cluster):
        node.remove(existing(cluster, name))


def existing(cluster: Cluster, name: str) -> Node:
    """The node of this name, which must have been started."""
    found = Node(cluster, name)
    if not (found.state / "number").exists():
        raise ClusterError(f"cluster {cluster.name} has no node {name}")
    return found


def load(cluster: Cluster, archive: Path) -> None:
    """Import an image archive into every node."""
    nodes = cluster.nodes()
    if not nodes:
        raise ClusterError(f"cluster {cluster.name} has no node to load {archive} into")
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda each: node.load(each, archive), nodes))


def kubectl(cluster: Cluster, arguments: Sequence[str]) -> list[str]:
    """The kubectl of the cluster's own version, as admin."""
    program = cluster.state / "program"
    if not program.exists():
        raise ClusterError(f"cluster {cluster.name} is not up")
    return [program.read_text(), "kubectl", f"--kubeconfig={cluster.kubeconfig}", *arguments]


def exec_command(cluster: Cluster, where: str, arguments: Sequence[str]) -> list[str]:
    """A command line that runs in a node, or with no name beside the API server."""
    if where:
        return node.command(existing(cluster, where), arguments)
    return ["nsenter", f"--net=/run/netns/{cluster.netns}", "--", *arguments]


def status(cluster: Cluster) -> list[tuple[str, str]]:
    """Every component and node with what it is doing; the log's tail where it ended."""
    started = [name for name in control_plane.COMPONENTS if process.pid_file(cluster, name).exists()]
    rows = [(name, component_status(cluster, name)) for name in started]
    api = Api.from_kubeconfig(cluster.kubeconfig) if cluster.kubeconfig.exists() else None
    for each in cluster.nodes():
        text = component_status(cluster, each.name)
        if text == "running" and api:
            text = "Ready" if node.is_ready(api, each.name) else f"not Ready{node.ended_text(each)}"
        rows.append((f"node {each.name}", text))
    return rows


def component_status(cluster: Cluster, component: str) -> str:
    """Running, or ended with the end of its log."""
    if process.running(cluster, component):
        return "running"
    return f"ended{process.tail(cluster.log(component))}"


def down(cluster: Cluster) -> None:
    """End everything the cluster started, from whatever state it is in, and leave nothing."""
    if not cluster.state.exists() and not leftovers(cluster):
        return
    with locked(cluster):
        for each in cluster.nodes():
            node.stop(each)
        control_plane.down(cluster)
        for namespace in netns.of_cluster(cluster):
            netns.remove(namespace)
        for group in cgroups.of_cluster(cluster.netns):
            cgroups.remove(group)
        # never across a mount: were one of a node's still there, its files would not be ours to remove
        subprocess.run(["rm", "-rf", "--one-file-system", str(cluster.state)], check=True)
    if left := leftovers(cluster):
        raise ClusterError(f"left behind: {', '.join(left)}")


def leftovers(cluster: Cluster) -> list[str]:
    """What of a cluster is on this machine: namespaces, cgroups, mounts, processes, files."""
    found = [f"network namespace {name}" for name in netns.of_cluster(cluster)]
    found += [f"cgroup {path}" for path in cgroups.of_cluster(cluster.netns)]
    mark = f"{cluster.state}/"
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    found += [f"mount {target}" for target in mounts if target.startswith(mark)]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in words and path.parent.name != str(os.getpid()):
            found.append(f"process {path.parent.name} {words.split(chr(0))[0]}")
    if cluster.state.exists():
        found.append(f"state {cluster.state}")
    return found


def sweep() -> list[str]:
    """Take down clusters whose owner is gone: a test run that was killed."""
    swept = []
    for state in (cache() / "clusters").glob("*/owner"):
        cluster = Cluster(state.parent.name)
        owner = process.Process.read(state)
        if owner is None or not owner.alive:
            down(cluster)
            swept.append(cluster.name)
    return swept


def prepare(version: str) -> Path:
    """Compile what `up` needs."""
    return build.build(version)
