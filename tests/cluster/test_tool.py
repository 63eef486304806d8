# SPDX-License-Identifier: MIT
"""The command itself: side by side, interrupted, broken, and gone without a trace."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cluster import build, control_plane, live, netns, process
from tests.cluster import cluster as tool
from tests.cluster.layout import DEFAULT_VERSION, REPOSITORY, Cluster, ClusterError
from tests.support.require import promised, require

pytestmark = pytest.mark.cluster
COMMAND = (sys.executable, "-m", "tests.cluster")


@pytest.fixture
def spare() -> Iterator[Cluster]:
    """A cluster beside the session's, not yet up."""
    require("cluster", tool.missing())
    tool.prepare(DEFAULT_VERSION)
    made = Cluster(f"spare-{secrets.token_hex(3)}")
    yield made
    tool.down(made)


def test_two_clusters_side_by_side_do_not_meet(spare: Cluster, cluster: live.Live) -> None:
    """Same addresses, other namespaces, other objects; and the end of one is not felt by the other."""
    if cluster.provider.provider != "local":
        pytest.skip("kind has its own tests of this")
    before = {node["metadata"]["uid"] for node in cluster.api.items("v1", "Node")}
    begin = time.monotonic()
    tool.up(spare, DEFAULT_VERSION)
    ready = time.monotonic() - begin
    tool.add_node(spare, "node-a")
    tool.up(spare, DEFAULT_VERSION)  # again: nothing changes
    tool.add_node(spare, "node-a")
    print(f"warm: control plane ready in {ready:.1f} s")
    other = live.Live(live.LocalCluster(spare.name))
    (node,) = other.api.items("v1", "Node")
    assert node["metadata"]["uid"] not in before
    assert [text for _, text in tool.status(spare)] == ["running"] * len(control_plane.COMPONENTS) + ["Ready"]
    tool.down(spare)
    assert tool.leftovers(spare) == []
    assert {node["metadata"]["uid"] for node in cluster.api.items("v1", "Node")} == before


@pytest.mark.parametrize("after", [0.3, 0.8, 1.5, 2.5])
def test_an_interrupted_start_still_comes_down(spare: Cluster, after: float) -> None:
    """Killed at some moment of `up` or `node`, without a chance to clean up."""
    script = 'for step in up "node node-a"; do "$@" --name "$NAME" $step || exit; done'
    with subprocess.Popen(
        ["sh", "-c", script, "sh", *COMMAND],
        cwd=REPOSITORY,
        env=os.environ | {"NAME": spare.name},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    ) as starting:
        time.sleep(after)
        os.killpg(starting.pid, signal.SIGKILL)
    tool.down(spare)
    assert tool.leftovers(spare) == []


def test_a_lost_record_does_not_keep_a_process_alive(spare: Cluster) -> None:
    """As if the interruption came between a start and its record."""
    tool.up(spare, DEFAULT_VERSION)
    record = process.pid_file(spare, "etcd")
    etcd = process.Process.read(record)
    record.unlink()
    tool.down(spare)
    assert etcd is not None
    assert not etcd.alive
    assert tool.leftovers(spare) == []


def test_a_component_that_fails_is_reported_with_the_end_of_its_log(spare: Cluster) -> None:
    """A port that is taken, which only etcd's log tells."""
    spare.state.mkdir(parents=True)
    netns.control_plane(spare)
    taken = "import socket, time; s = socket.create_server(('127.0.0.1', 2379)); open('squats', 'w')"
    process.start(spare, "squatter", spare.netns, [sys.executable, "-c", f"{taken}; time.sleep(600)"])
    assert process.wait_until((spare.state / "squats").exists, 60)
    with pytest.raises(
        ClusterError, match=r"(?s)etcd (is not running|ended at once).*address already in use"
    ):
        tool.up(spare, DEFAULT_VERSION)
    assert any(text.startswith("ended") for _, text in tool.status(spare))


def test_a_killed_runs_cluster_is_swept_by_the_next(spare: Cluster) -> None:
    """The owner's record names a process that is gone."""
    tool.up(spare, DEFAULT_VERSION)
    process.Process(os.getpid(), 1).write(spare.state / "owner")
    assert spare.name in tool.sweep()
    assert tool.leftovers(spare) == []


def test_the_oldest_supported_control_plane_runs(spare: Cluster) -> None:
    """Kubernetes 1.30: compiled where the tier was promised, elsewhere used where it was compiled."""
    if "cluster" in promised():
        build.build("1.30.14")
    if not build.binary("1.30.14").exists():
        pytest.skip("Kubernetes 1.30 is not compiled: python -m tests.cluster build --kubernetes 1.30")
    tool.up(spare, "1.30.14")
    tool.add_node(spare, "node-a")
    other = live.Live(live.LocalCluster(spare.name))
    (node,) = other.api.items("v1", "Node")
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.30.14"


def test_kind_is_refused_by_naming_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no docker engine answers."""
    monkeypatch.setenv("CLUSTER", "kind")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert "docker" in live.missing()
    with pytest.raises(ClusterError, match="docker"):
        live.provider("none").up(DEFAULT_VERSION)
