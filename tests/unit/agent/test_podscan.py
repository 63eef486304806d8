# SPDX-License-Identifier: MIT
"""Pods found in /proc and cgroup trees of several runtimes, and in trees that change or are hostile."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.errors import ResyncFailed
from pacto_agent import podscan
from pacto_agent.mapper import ProcMapper
from pacto_agent.podmap import PodMap
from pacto_agent.podscan import WALK_DEPTH, CgroupTree, find_tree, pids_of_pods, pod_uids, read_pods, walk
from tests.support.faketree import FIXTURES, filled, make_cgroups, make_proc, make_process

NODES = [
    pytest.param(yaml.safe_load(path.read_text()), id=path.stem) for path in sorted(FIXTURES.glob("*.yaml"))
]
UID = "11111111-1111-4111-8111-111111111111"
POD = f"/kubepods/burstable/pod{UID}/{{a}}"
SHIM = {"parent": 1, "netns": 100, "cgroup": ["0::/system.slice/containerd.service"]}


def read(root: Path, node: dict[str, Any]) -> PodMap:
    """The map of a described node."""
    proc, top = make_proc(root, node["processes"]), make_cgroups(root, node["cgroups"])
    return read_pods(str(proc), find_tree(str(top)), own_uid=node.get("own_uid", ""))


@pytest.mark.parametrize("node", NODES)
def test_a_nodes_pods_are_in_their_places(tmp_path: Path, node: dict[str, Any]) -> None:
    pods = read(tmp_path, node)
    assert find_tree(str(tmp_path / "cgroup")).mode == node["mode"]
    assert pods.node_netns == node["node_netns"]
    assert {
        uid: {"netns": place.netns, "pids": list(place.pids), "trusted": place.by_cgroup}
        | ({"host_network": True} if place.host_network else {})
        for uid, place in pods.places.items()
    } == node["pods"]


@pytest.mark.parametrize("node", NODES)
def test_a_look_at_the_directories_alone_finds_the_same_pods(tmp_path: Path, node: dict[str, Any]) -> None:
    pods = read(tmp_path, node)
    assert pod_uids(find_tree(str(tmp_path / "cgroup"))) == set(pods.places)


@pytest.mark.parametrize("node", NODES)
def test_only_v2_directories_are_ids_of_sockets_cgroups(tmp_path: Path, node: dict[str, Any]) -> None:
    pods = read(tmp_path, node)
    tree = find_tree(str(tmp_path / "cgroup"))
    inodes = {inode for inode, _ in walk(tree.v2)} if tree.v2 else set()
    assert pods.cgroup_pods.keys() == inodes


def test_the_same_node_from_a_private_namespace_has_the_same_pods(tmp_path: Path) -> None:
    relative = {600: f"0::/../../burstable/pod{UID}/{{a}}", 500: "0::/../../../../x"}
    absolute = {600: f"0::{POD}", 500: "0::/system.slice/x"}
    maps = []
    for name, paths in (("private", relative), ("host", absolute)):
        root = tmp_path / name
        root.mkdir()
        processes = {
            500: {"parent": 1, "netns": 100, "cgroup": [paths[500]]},
            600: {"parent": 500, "netns": 201, "cgroup": [paths[600]]},
        }
        maps.append(read(root, {"processes": processes, "cgroups": {"": [POD]}}))
    private, host = (
        {uid: replace(place, started_at=0.0) for uid, place in one.places.items()} for one in maps
    )
    assert private == host
    assert maps[0].node_netns == maps[1].node_netns


def test_the_node_is_found_without_reading_process_1(tmp_path: Path) -> None:
    processes = {500: SHIM, 600: {"parent": 500, "netns": 201, "cgroup": [f"0::{POD}"]}}
    proc = make_proc(tmp_path, processes)
    make_process(proc, 1, {"parent": 0, "cgroup": ["0::/init.scope"]})  # its ns/net cannot be read
    pods = read_pods(str(proc), find_tree(str(make_cgroups(tmp_path, {"": [POD]}))))
    assert pods.node_netns == 100


def test_processes_that_vanish_or_are_malformed_are_left_out(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, {500: SHIM, 600: {"parent": 500, "netns": 201, "cgroup": [f"0::{POD}"]}})
    (proc / "601").mkdir()  # ended between the listing and the look
    make_process(proc, 602, {"netns": 201, "cgroup": [f"0::{POD}"]})
    (proc / "602" / "stat").write_text("602 (half")
    make_process(proc, 603, {"netns": "none", "cgroup": [f"0::{POD}"]})
    pods = read_pods(str(proc), CgroupTree("v2", "", ""))
    assert pods.places[UID].pids == (600,)


def test_a_proc_that_cannot_be_listed_is_a_failed_resync(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_pods(str(tmp_path / "absent"), CgroupTree("v2", "", ""))
    with pytest.raises(Exception, match="absent: cannot list processes"):
        ProcMapper(str(tmp_path / "absent"), CgroupTree("v2", "", "")).pods(PodMap())


def test_a_cgroup_tree_that_is_absent_or_partly_gone_is_walked_as_far_as_it_is(tmp_path: Path) -> None:
    assert list(walk(str(tmp_path / "absent"))) == []
    top = make_cgroups(tmp_path, {"": [POD, "/system.slice"]})
    (top / "link").symlink_to(top / "kubepods")
    paths = {path for _, path in walk(str(top))}
    assert filled(POD) in paths
    assert not any(path.startswith("/link") for path in paths), "no link leads anywhere"


def test_a_walk_is_bounded_in_depth(tmp_path: Path) -> None:
    top = make_cgroups(tmp_path, {"": ["/d" * 60]})
    assert max(path.count("/") for _, path in walk(str(top))) == WALK_DEPTH


def test_a_walk_is_bounded_in_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = make_cgroups(tmp_path, {"": [f"/kubepods/pod{number:03}/c" for number in range(30)]})
    monkeypatch.setattr("pacto_agent.podscan.WALK_DIRECTORIES", 20)
    assert len(list(walk(str(top)))) == 20
    assert len(pod_uids(find_tree(str(top)))) == 19, "one of the twenty is the directory of them all"


def test_a_hostile_name_leads_nowhere(tmp_path: Path) -> None:
    # a process may name itself as it likes; its own words never lead to a path
    processes = {
        500: SHIM,
        600: {"parent": 500, "netns": 201, "name": "kubelet --cgroup-root=/../..", "cgroup": [f"0::{POD}"]},
        601: {"parent": 500, "netns": 202, "name": ") S 1 (x", "cgroup": ["0::/../../../../../etc"]},
    }
    pods = read(tmp_path, {"processes": processes, "cgroups": {"": [POD]}})
    assert pods.places.keys() == {UID}
    assert pods.node_netns == 100


def test_processes_of_a_pod_are_numbered_as_its_cgroups_list_them(tmp_path: Path) -> None:
    top = make_cgroups(tmp_path, {"": [POD, f"{POD}/child"]})
    (top / filled(POD).lstrip("/") / "cgroup.procs").write_text("600\n0\n")
    (top / filled(POD).lstrip("/") / "child" / "cgroup.procs").write_text("601\n")
    assert pids_of_pods(find_tree(str(top)), {UID, "another"}) == {UID: [600, 601]}


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories that were listed."""
    listed: list[str] = []
    real = podscan._directories

    def listing(path: str) -> list[os.DirEntry[str]]:
        listed.append(path)
        return real(path)

    monkeypatch.setattr(podscan, "_directories", listing)
    return listed


def test_processes_of_some_pods_are_asked_for_in_one_look_that_enters_no_other_pod(
    tmp_path: Path, scanned: list[str]
) -> None:
    pods = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(20)]
    paths = [f"/kubepods/burstable/pod{uid}/{{a}}" for uid in pods]
    tree = find_tree(str(make_cgroups(tmp_path, {"": paths})))
    assert pids_of_pods(tree, {pods[3], pods[7]}) == {pods[3]: [], pods[7]: []}
    inside = [path for path in scanned if "/pod" in path.partition("cgroup")[2]]
    assert {path.partition("/pod")[2][:36] for path in inside} == {pods[3], pods[7]}
    assert len(scanned) == len(set(scanned)), "no directory is looked at twice"


def test_a_pod_of_very_many_directories_is_not_read_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = find_tree(str(make_cgroups(tmp_path, {"": [f"{POD}/{number}" for number in range(400)]})))
    read: list[str] = []

    def pids(path: str) -> set[int]:
        read.append(path)
        return {1}

    monkeypatch.setattr(podscan, "_read_pids", pids)
    assert pids_of_pods(tree, {UID}) == {UID: [1]}
    assert len(read) == podscan.POD_DIRECTORIES


def test_a_very_long_list_of_processes_is_read_in_part_and_no_number_is_cut(tmp_path: Path) -> None:
    top = make_cgroups(tmp_path, {"": [POD]})
    numbers = range(1_000_000, 1_010_000)
    (top / filled(POD).lstrip("/") / "cgroup.procs").write_text("".join(f"{one}\n" for one in numbers))
    found = pids_of_pods(find_tree(str(top)), {UID})[UID]
    assert 100 < len(found) < 1000
    assert found == list(numbers[: len(found)])


def test_a_look_for_pods_is_bounded_where_no_directory_is_a_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanned: list[str]
) -> None:
    monkeypatch.setattr(podscan, "WALK_DIRECTORIES", 50)
    top = make_cgroups(tmp_path, {"": [f"/system.slice/{number}.service" for number in range(200)]})
    assert pod_uids(find_tree(str(top))) == set()
    assert len(scanned) <= 51


@pytest.mark.parametrize(
    ("mounts", "mode"),
    [
        ({"": []}, "v2"),
        ({"unified": [], "pids": []}, "hybrid"),
        ({"pids": [], "memory": []}, "v1"),
        ({"systemd": []}, "v1"),
        ({}, "v1"),
    ],
)
def test_the_mode_is_read_off_the_mounts(tmp_path: Path, mounts: dict[str, list[str]], mode: str) -> None:
    assert find_tree(str(make_cgroups(tmp_path, mounts))).mode == mode


def test_most_processes_unreadable_is_said_and_names_the_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = make_proc(tmp_path, {500: SHIM})
    mapper = ProcMapper(str(proc), CgroupTree("v2", "", ""))
    few, most = PodMap(denied=3, processes=50), PodMap(denied=50, processes=3)
    monkeypatch.setattr("pacto_agent.mapper.read_pods", lambda *_args, **_more: few)
    assert mapper.pods(PodMap()) is few
    monkeypatch.setattr("pacto_agent.mapper.read_pods", lambda *_args, **_more: most)
    with pytest.raises(Exception, match="SYS_PTRACE"):
        mapper.pods(PodMap())


def test_pods_whose_processes_proc_does_not_show_are_said_when_they_are_most(tmp_path: Path) -> None:
    other = POD.replace("1111-4111", "2222-4222")
    proc = make_proc(tmp_path, {500: SHIM, 600: {"parent": 500, "netns": 201, "cgroup": [f"0::{POD}"]}})
    top = make_cgroups(tmp_path, {"": [POD, other, other.replace("2222", "3333")]})
    mapper = ProcMapper(str(proc), find_tree(str(top)))
    hidden = [top / filled(path).lstrip("/") for path in (other, other.replace("2222", "3333"))]
    for number, group in enumerate(hidden):
        assert mapper.pods(PodMap()).places[UID].pids == (600,), "as many hidden as shown are no rule"
        (group / "cgroup.procs").write_text(f"{700 + number}\n")
    with pytest.raises(ResyncFailed, match="no process of 2 pods that have some: mount it without hidepid"):
        mapper.pods(PodMap())
    make_process(proc, 700, {"netns": 202, "cgroup": ["0::/"]})  # it came meanwhile
    assert mapper.pods(PodMap()).processes == 3


def test_many_processes_of_one_pod_are_read_in_batches(tmp_path: Path) -> None:
    processes = {500: SHIM}
    proc = make_proc(tmp_path, processes)
    for pid in range(1000, 3000):
        make_process(proc, pid, {"parent": 500, "netns": 201, "cgroup": [f"0::{POD}"]})
    pods = read_pods(str(proc), CgroupTree("v2", "", ""))
    assert pods.processes == 2001
    assert len(pods.places[UID].pids) == 8
