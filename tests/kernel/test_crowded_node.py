# SPDX-License-Identifier: MIT
"""A crowded node: two hundred network namespaces, and what either mapper says of it and of a hidden /proc."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubectl_pacto.model.node import CollectionReason, CollectionState, NodeRuntimeObservation, PodReason
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent import limits
from pacto_agent.flows import Sockets
from pacto_agent.mapper import Mapper, open_mapper
from pacto_agent.podmap import PodMap
from pacto_agent.podscan import find_tree
from tests.kernel.test_agent_life import PR_CAPBSET_DROP, agent_process, read_list
from tests.support.agents import options, watching
from tests.support.hosts import Host, Pod, until

pytestmark = pytest.mark.own_kernel(
    "two hundred pods, one process after the other, take an emulator many minutes; "
    "what of the two mappers depends on a kernel is in test_mappers.py"
)
NAMESPACES = 200
CLONE_NEWNS = 0x20000
MS_REC_PRIVATE = 0x4000 | 0x40000


@dataclass
class Crowd:
    """The pods of the node, by what is odd about them."""

    plain: list[Pod]
    on_the_node: list[Pod]  # host network
    forked: list[Pod]  # a listener that two processes hold
    inherited: list[Pod]  # a listener whose maker is gone
    twins: tuple[Pod, Pod]  # in one namespace

    @property
    def all(self) -> list[Pod]:
        """Every pod."""
        return [*self.plain, *self.on_the_node, *self.forked, *self.inherited, *self.twins]


@pytest.fixture(scope="module")
def crowd(_kernel: None) -> Iterator[Crowd]:
    """A node of so many namespaces, made once."""
    host = Host()
    try:
        plain = [host.pod(systemd=bool(number % 2)) for number in range(NAMESPACES - 11)]
        for number, pod in enumerate(plain):
            listening = f"listen('0.0.0.0', {1000 + number}); listen('::', 443, v6only={bool(number % 3)})"
            pod.run(f"{listening}; open_connection('127.0.0.1', {1000 + number})")
        forked, inherited = [host.pod() for _ in range(5)], [host.pod() for _ in range(5)]
        for pod in forked:
            pod.run("listen('0.0.0.0', 8080); child('pass')")
        for pod in inherited:
            pod.run("shared = listen('0.0.0.0', 8081); child('pass'); close(shared)")
        on_the_node = [host.pod(netns=None) for _ in range(3)]
        for pod in on_the_node:
            pod.run("listen('127.0.0.1')")
        first = host.pod()
        yield Crowd(plain, on_the_node, forked, inherited, (first, host.pod(netns=first.pid)))
    finally:
        host.close()


def read(mapper: Mapper) -> tuple[PodMap, dict[str, Sockets | None]]:
    """What a mapper says of the node now."""
    pods = mapper.pods(PodMap())
    mapped = [place for place in pods.places.values() if place.mapped]
    return pods, dict(mapper.baselines(mapped, lambda _uid: frozenset()))


def both() -> list[tuple[PodMap, dict[str, Sockets | None]]]:
    """What /proc says, and what the iterators do."""
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (5, 11):
        pytest.skip("kernel: no iterator of sockets before 5.11")
    found = []
    for name in ("proc", "iter"):
        mapper = open_mapper(name, "/proc", find_tree("/sys/fs/cgroup"))
        try:
            found.append(read(mapper))
        finally:
            mapper.close()
    return found


def test_both_mappers_give_one_answer_about_every_pod(crowd: Crowd) -> None:
    (by_proc, proc_sockets), (by_iter, iter_sockets) = both()
    assert by_proc.node_netns == by_iter.node_netns
    for pod in crowd.all:
        one, other = by_proc.places[pod.uid], by_iter.places[pod.uid]
        assert one.netns == other.netns == pod.netns
        assert set(one.pids) == set(other.pids)
        assert (one.host_network, one.shared, one.by_cgroup) == (
            other.host_network,
            other.shared,
            other.by_cgroup,
        )
    assert len({by_iter.places[pod.uid].netns for pod in crowd.all}) == NAMESPACES + 1
    assert by_iter.owners.items() >= {pod.netns: pod.uid for pod in crowd.plain}.items()
    assert proc_sockets.keys() == iter_sockets.keys()
    for uid in iter_sockets.keys() & {pod.uid for pod in crowd.all}:
        assert told(proc_sockets[uid]) == told(iter_sockets[uid])


def told(
    sockets: Sockets | None,
) -> tuple[list[tuple[int, str, int]], list[tuple[str, int, bool]]]:
    """What both know of a namespace: the iterators alone know V6ONLY and the maker."""
    assert sockets is not None
    listeners = sorted((one.inode, one.address, one.port) for one in sockets.listeners)
    return listeners, sorted((one.address, one.port, one.pending) for one in sockets.outbound)


def test_each_says_what_is_so(crowd: Crowd) -> None:
    for pods, sockets in both():
        assert all(pods.places[pod.uid].host_network for pod in crowd.on_the_node)
        assert all(pods.places[pod.uid].shared for pod in crowd.twins)
        assert not sockets.keys() & {pod.uid for pod in (*crowd.on_the_node, *crowd.twins)}
        for number, pod in enumerate(crowd.plain):
            listeners, outbound = told(sockets[pod.uid])
            assert {port for _, _, port in listeners} == {443, 1000 + number}
            assert outbound == [("127.0.0.1", 1000 + number, False)]
        for pods_of_kind, port in ((crowd.forked, 8080), (crowd.inherited, 8081)):
            for pod in pods_of_kind:
                assert [one[2] for one in told(sockets[pod.uid])[0]] == [port], "once, whoever holds it"


def test_the_whole_agent_has_every_pod_of_it(crowd: Crowd, mapper: str) -> None:
    with watching(options(mapper=mapper)) as agent:
        until(
            lambda: sum(pod.complete for pod in agent.view.pods) >= len(crowd.all) - 5,
            "every pod with a namespace of its own",
        )
        view = agent.view
        found = {pod.uid: pod for pod in view.pods}
        for number, pod in enumerate(crowd.plain):
            assert found[pod.uid].complete
            assert [one.port for one in found[pod.uid].listeners] == [443, 1000 + number]
            assert [(one.port, one.open) for one in found[pod.uid].peers] == [(1000 + number, 1)]
        assert all(found[pod.uid].reasons == (PodReason.HOST_NETWORK,) for pod in crowd.on_the_node)
        assert all(found[pod.uid].reasons == (PodReason.SHARED_NAMESPACE,) for pod in crowd.twins)
        assert view.collection.state is CollectionState.RUNNING


# root's group is exempt unless another one is; then its files cannot be opened, or it does not show
CLOSED, HIDDEN, PTRACEABLE = "hidepid=1,gid=65534", "hidepid=2,gid=65534", "hidepid=4"


def hide_processes(how: str) -> None:
    """A /proc of this process's own that shows no other's, as hardened hosts mount it."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNS) == 0
    assert libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None) == 0
    assert libc.mount(b"proc", b"/proc", b"proc", 0, how.encode()) == 0
    assert libc.prctl(PR_CAPBSET_DROP, limits.CAP_SYS_PTRACE, 0, 0, 0) == 0


def seen_with_hidden_processes(mapper: str, how: str, output: Path) -> NodeRuntimeObservation:
    """The first view of an agent that may not look at others' processes."""
    arguments = ("--sink", "file", "--output", str(output), "--mapper", mapper)
    with agent_process(*arguments, preexec_fn=lambda: hide_processes(how)) as process:
        until(lambda: len(read_list(output)) == 2, "the object and its Lease")
        view = decode_node(read_list(output)[0])
        process.terminate()
        assert process.wait(30) == 0
    return view


@pytest.mark.parametrize(
    ("how", "remedy"), [(CLOSED, "SYS_PTRACE"), (HIDDEN, "without hidepid"), (PTRACEABLE, "without hidepid")]
)
def test_a_hidden_proc_is_said_by_the_mapper_that_needs_it(
    crowd: Crowd, tmp_path: Path, how: str, remedy: str
) -> None:
    view = seen_with_hidden_processes("proc", how, tmp_path / "view.json")
    assert view.collection.reason is CollectionReason.RESYNC_FAILED
    assert remedy in view.collection.message
    assert not any(pod.complete for pod in view.pods)


@pytest.mark.parametrize("how", [CLOSED, HIDDEN, PTRACEABLE])
def test_a_hidden_proc_hides_nothing_from_the_iterators(crowd: Crowd, tmp_path: Path, how: str) -> None:
    if tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2]) < (5, 11):
        pytest.skip("kernel: no iterator of sockets before 5.11")
    view = seen_with_hidden_processes("iter", how, tmp_path / "view.json")
    assert view.collection.state is CollectionState.RUNNING
    found = {pod.uid: pod for pod in view.pods}
    for number, pod in enumerate(crowd.plain):
        assert found[pod.uid].complete
        assert [one.port for one in found[pod.uid].listeners] == [443, 1000 + number]
