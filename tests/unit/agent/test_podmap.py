# SPDX-License-Identifier: MIT
"""The map of pods: whose a socket is, and how the map follows from processes and cgroups."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from pacto_agent.podmap import IdentifiedProcess, Named, Owner, Place, PodMap, PodMapBuilder

TABLE = Path(__file__).parents[2] / "tables" / "agent_naming.yaml"
NODE = 1


def named_map() -> PodMap:
    """The map that the table describes."""
    places = {
        "a": Place("a", netns=10, pids=(1,), by_cgroup=True, cookie=7),
        "b": Place("b", netns=20, pids=(2,), by_cgroup=True),
        "v": Place("v", netns=30, pids=(3,), by_cgroup=False),
        "h": Place("h", netns=NODE, pids=(4,), by_cgroup=True, host_network=True),
        "s": Place("s", netns=50, pids=(5,), by_cgroup=True, shared=True),
        "t": Place("t", netns=50, pids=(6,), by_cgroup=True, shared=True),
        "n": Place("n"),  # its cgroup exists, and no process was in it yet
    }
    return PodMap(
        places=places,
        owners={10: "a", 20: "b", 30: "v"},
        cgroup_pods={110: "a", 111: "a", 120: "b", 130: "v", 140: "h", 150: "s", 160: "t", 170: "n", 900: ""},
        namespaces=frozenset({NODE, 10, 20, 30, 50, 99}),
        steady=frozenset({10, 20}),
        node_netns=NODE,
    )


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["name"]) for row in yaml.safe_load(TABLE.read_text())]
)
def test_a_socket_is(row: dict[str, Any]) -> None:
    owner, _, uid = row["expect"].partition(" ")
    told = named_map().name(
        row["cgroup"], row["netns"], row.get("cookie", 0), settled=row.get("settled", False)
    )
    assert told == Named(Owner(owner), uid)


class Node:
    """Builds a map out of plain facts: a shim (pid 2) in the node's namespace, and pods' processes."""

    def __init__(self) -> None:
        self.builder = PodMapBuilder()
        self.process(2, 1, NODE, "/system.slice/containerd.service")

    def process(self, pid: int, parent: int, netns: int, path: str, *, started: int = 0) -> None:
        """One process of a v2 host."""
        self.builder.add_process((pid, parent, started or pid, netns, f"0::{path}\n".encode()))

    def pod(self, uid: str, pid: int, netns: int, *, parent: int = 2, started: int = 0) -> None:
        """One process of a pod."""
        self.process(pid, parent, netns, path_of(uid), started=started)


def path_of(uid: str, container: str = "c") -> str:
    """The cgroup of a pod's container."""
    return f"/kubepods/burstable/pod{uid}/{container}"


def test_a_pods_namespace_is_its_oldest_processs() -> None:
    node = Node()
    node.pod("a", 30, 99, started=500)
    node.pod("a", 40, 10, started=100)
    node.pod("a", 20, 10, started=300)
    place = node.builder.finish().places["a"]
    assert (place.netns, place.started, place.pids) == (10, 100, (40, 20))


def test_of_processes_as_old_the_lower_number_is_the_oldest() -> None:
    node = Node()
    node.pod("a", 30, 99, started=100)
    node.pod("a", 20, 10, started=100)
    assert node.builder.finish().places["a"].netns == 10


def test_a_few_processes_are_remembered_of_many() -> None:
    node = Node()
    for pid in range(100, 200):
        node.pod("a", pid, 10)
    assert node.builder.finish().places["a"].pids == tuple(range(100, 108))


def test_a_monitor_is_not_the_pods_process() -> None:
    node = Node()
    node.process(10, 1, NODE, f"{path_of('a').rsplit('/', 1)[0]}/crio-conmon-1.scope", started=1)
    node.pod("a", 20, 10, parent=10)
    pods = node.builder.finish()
    assert (pods.places["a"].netns, pods.places["a"].host_network) == (10, False)


def test_a_pod_with_a_monitor_alone_is_not_mapped() -> None:
    node = Node()
    monitor = f"{path_of('a').rsplit('/', 1)[0]}/crio-conmon-1.scope"
    node.process(10, 1, NODE, monitor)
    node.builder.add_cgroup(110, monitor, v2=True)
    place = node.builder.finish().places["a"]
    assert not place.mapped
    assert place.netns == 0


def test_the_nodes_namespace_is_that_of_the_pods_parents_outside_pods() -> None:
    node = Node()
    node.process(1, 0, 999, "/init.scope")  # the first process of a container that is a node
    node.pod("a", 20, 10)
    node.pod("b", 21, 11)
    node.pod("h", 22, NODE)
    pods = node.builder.finish()
    assert pods.node_netns == NODE
    assert [uid for uid, place in pods.places.items() if place.host_network] == ["h"]


def test_most_shims_decide_and_one_stray_parent_does_not() -> None:
    node = Node()
    node.process(3, 1, 77, "/system.slice/strange.service")
    for pid in (20, 21, 22):
        node.pod(f"p{pid}", pid, pid)
    node.pod("x", 30, 30, parent=3)
    assert node.builder.finish().node_netns == NODE


def test_a_child_of_a_pods_process_says_nothing_about_the_node() -> None:
    node = Node()
    node.pod("a", 20, 10)
    for pid in range(30, 40):
        node.pod("a", pid, 10, parent=20)
    assert node.builder.finish().node_netns == NODE


def test_without_a_parent_to_see_no_namespace_is_the_nodes() -> None:
    builder = PodMapBuilder()
    builder.add_process((20, 2, 20, 10, f"0::{path_of('a')}\n".encode()))
    pods = builder.finish()
    assert pods.node_netns == 0
    assert pods.places["a"].mapped


def test_a_namespace_that_two_pods_call_their_own_is_neithers() -> None:
    node = Node()
    node.pod("a", 20, 10)
    node.pod("b", 21, 10)
    pods = node.builder.finish()
    assert 10 not in pods.owners
    assert all(pods.places[uid].shared and not pods.places[uid].mapped for uid in "ab")


def test_a_helper_that_visits_does_not_make_a_namespace_shared() -> None:
    node = Node()
    node.pod("a", 20, 10)
    node.pod("b", 21, 11)
    node.pod("b", 22, 10)
    pods = node.builder.finish()
    assert pods.owners == {10: "a", 11: "b"}
    assert pods.places["a"].mapped
    assert pods.places["b"].pids == (21,)


def test_a_pod_without_a_process_keeps_what_was_known() -> None:
    before, after = Node(), Node()
    before.pod("a", 20, 10)
    after.builder.add_cgroup(110, path_of("a"), v2=True)
    pods = after.builder.finish(before.builder.finish())
    assert (pods.places["a"].netns, pods.places["a"].pids) == (10, ())
    assert pods.owners == {10: "a"}
    assert not pods.places["a"].mapped


def test_a_pod_never_seen_with_a_process_is_listed_unmapped() -> None:
    node = Node()
    node.builder.add_cgroup(110, path_of("a"), v2=True)
    assert node.builder.finish().places == {"a": Place("a")}


def test_a_pod_without_process_and_cgroup_is_gone() -> None:
    before = Node()
    before.pod("a", 20, 10)
    assert Node().builder.finish(before.builder.finish()).places == {}


def test_a_reused_namespace_is_the_living_pods() -> None:
    before, after = Node(), Node()
    before.pod("old", 20, 10)
    after.builder.add_cgroup(110, path_of("old"), v2=True)
    after.pod("new", 30, 10)
    pods = after.builder.finish(before.builder.finish())
    assert pods.owners == {10: "new"}
    assert pods.places["new"].mapped
    assert 10 not in pods.steady


def test_a_namespace_is_steady_while_its_oldest_process_lives() -> None:
    maps: list[PodMap] = []
    for started in (100, 100, 200):
        node = Node()
        node.pod("a", 20, 10, started=started)
        maps.append(node.builder.finish(maps[-1] if maps else None))
    assert [pods.steady for pods in maps] == [frozenset(), {10}, frozenset()]


def test_cgroups_of_the_v2_tree_alone_are_ids() -> None:
    node = Node()
    node.builder.add_cgroup(110, path_of("a"), v2=True)
    node.builder.add_cgroup(900, "/system.slice", v2=True)
    node.builder.add_cgroup(120, path_of("b"), v2=False)
    pods = node.builder.finish()
    assert pods.cgroup_pods == {110: "a", 900: ""}
    assert pods.places.keys() == {"a", "b"}


def test_a_pod_is_trusted_by_its_cgroups_only_if_all_its_processes_v2_cgroups_name_it() -> None:
    node = Node()
    node.pod("a", 20, 10)
    node.builder.add_process((21, 20, 21, 10, f"3:pids:{path_of('a')}\n0::/elsewhere\n".encode()))
    assert not node.builder.finish().places["a"].by_cgroup


def test_identified_processes_are_named_by_the_ids_of_their_cgroups() -> None:
    builder = PodMapBuilder()
    builder.add_cgroup(110, path_of("a"), v2=True)
    builder.add_cgroup(210, path_of("b"), v2=False)
    monitor = f"{path_of('a').rsplit('/', 1)[0]}/crio-conmon-1.scope"
    builder.add_cgroup(111, monitor, v2=True)
    builder.add_identified(IdentifiedProcess(2, 1, 2, NODE, 1, 1, 0))
    builder.add_identified(IdentifiedProcess(10, 1, 3, NODE, 1, 111, 0))
    builder.add_identified(IdentifiedProcess(20, 10, 20, 10, 42, 110, 0))
    builder.add_identified(IdentifiedProcess(30, 2, 30, 11, 43, 1, 210))
    pods = builder.finish()
    assert pods.node_netns == NODE
    assert (pods.places["a"].netns, pods.places["a"].cookie, pods.places["a"].by_cgroup) == (10, 42, True)
    assert (pods.places["b"].netns, pods.places["b"].by_cgroup) == (11, False)


def test_sockets_with_the_roots_id_are_told_apart_by_namespace() -> None:
    # cgroup v1: every socket carries the root's id
    builder = PodMapBuilder()
    builder.add_process((2, 1, 2, NODE, b"3:pids:/system.slice\n"))
    for pid, uid, netns in ((20, "a", 10), (21, "b", 11)):
        builder.add_process((pid, 2, pid, netns, f"3:pids:{path_of(uid)}\n".encode()))
    pods = builder.finish()
    assert [pods.name(1, netns).uid for netns in (10, 11)] == ["a", "b"]


def test_ids_that_agree_in_their_low_half_are_two_cgroups() -> None:
    node = Node()
    node.pod("a", 20, 10)
    node.pod("b", 21, 11)
    node.builder.add_cgroup(0x1_0000_0007, path_of("a"), v2=True)
    node.builder.add_cgroup(0x2_0000_0007, path_of("b"), v2=True)
    pods = node.builder.finish()
    assert pods.name(0x1_0000_0007, 10) == Named(Owner.POD, "a")
    assert pods.name(0x2_0000_0007, 11) == Named(Owner.POD, "b")
    assert pods.name(0x2_0000_0007, 10).owner is Owner.FOREIGN
    assert pods.name(0x0_0000_0007, 10).owner is Owner.UNKNOWN, "cut to 32 bits it is nobody's"


def test_a_map_of_many_processes_grows_with_pods_and_not_with_what_a_process_says() -> None:
    def size(count: int) -> int:
        tracemalloc.start()
        try:
            node = Node()
            for pid in range(100, 100 + count):
                node.pod("a", pid, 10)
            pods = node.builder.finish()
            del node
            gc.collect()
            assert pods.processes == count + 1
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    few, many = size(1_000), size(20_000)
    assert many < 2 * few, "a map keeps a few processes of each namespace"
