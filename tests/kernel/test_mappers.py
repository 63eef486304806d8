# SPDX-License-Identifier: MIT
"""Both mappers, asked about one real node at one moment: the same answers where both can see."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

import pytest

from kubectl_pacto.model.node import CollectionReason
from pacto_agent.flows import Sockets
from pacto_agent.mapper import Mapper, open_mapper
from pacto_agent.podmap import Place, PodMap
from pacto_agent.podscan import find_tree
from tests.support.agents import options, watching
from tests.support.hosts import Host, Pod, until

NOTHING: frozenset[int] = frozenset()


@pytest.fixture
def mappers() -> Iterator[tuple[Mapper, Mapper]]:
    """/proc's and the iterators'."""
    tree = find_tree("/sys/fs/cgroup")
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (5, 11):
        pytest.skip("kernel: no iterator of sockets before 5.11")
    pair = open_mapper("proc", "/proc", tree), open_mapper("iter", "/proc", tree)
    yield pair
    for mapper in pair:
        mapper.close()


def place_of(mapper: Mapper, uid: str) -> Place:
    """Where a mapper has a pod."""
    return mapper.pods(PodMap()).places[uid]


def baseline(mapper: Mapper, pod: Pod) -> Sockets:
    """What a mapper reads of a pod."""
    ((_, sockets),) = mapper.baselines([place_of(mapper, pod.uid)], lambda _uid: NOTHING)
    assert sockets is not None
    return sockets


def test_both_have_every_pod_in_its_place(host: Host, mappers: tuple[Mapper, Mapper]) -> None:
    pods = [host.pod(), host.pod(systemd=True), host.pod(netns=None)]
    twin = host.pod(netns=pods[0].pid)
    host.beside(pods[1])
    for pod in (*pods, twin):
        by_proc, by_iter = (place_of(mapper, pod.uid) for mapper in mappers)
        assert by_proc.netns == by_iter.netns == pod.netns
        assert len(by_proc.pids) == len(by_iter.pids)
        assert (by_proc.host_network, by_proc.shared) == (by_iter.host_network, by_iter.shared)
        assert by_proc.by_cgroup
        assert by_iter.by_cgroup


def test_both_read_the_same_listeners(host: Host, pod: Pod, mappers: tuple[Mapper, Mapper]) -> None:
    pod.run(
        "listen('0.0.0.0', 80); listen('127.0.0.1', 81); listen('::', 82); listen('::1', 83)\n"
        "listen('::ffff:127.0.0.1', 84, v6only=False); listen('::', 85, v6only=True)\n"
        "[listen('0.0.0.0', 86, reuse_port=True) for _ in range(3)]\n"
        "unbound = socket.socket(); unbound.listen(1); child('pass')"
    )
    told = [
        {(one.inode, one.address, one.port) for one in baseline(mapper, pod).listeners} for mapper in mappers
    ]
    assert told[0] == told[1]
    assert len(told[0]) == 10
    assert {inode for inode, *_ in told[0]} >= set(pod.run("list(KEPT)"))


def test_only_the_iterators_know_v6only_and_the_maker(
    host: Host, pod: Pod, mappers: tuple[Mapper, Mapper]
) -> None:
    pod.run("listen('::', 82, v6only=False); listen('::', 85, v6only=True)")
    by_proc, by_iter = (
        {one.port: one.v6only for one in baseline(mapper, pod).listeners} for mapper in mappers
    )
    assert by_proc == {82: None, 85: None}
    assert by_iter == {82: False, 85: True}
    assert all(one.cgroup_id for one in baseline(mappers[1], pod).listeners)


def test_both_read_the_same_outbound_connections(
    host: Host, pod: Pod, mappers: tuple[Mapper, Mapper]
) -> None:
    pod.run("listen('::', 8080, v6only=False); full = black_hole()")
    for peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        pod.run(f"open_connection({peer!r}, 8080)")
    pod.run("start_connecting('127.0.0.1', full); time.sleep(1.3)")
    full = pod.number("full")
    told = [
        sorted((one.address, one.port, one.pending) for one in baseline(mapper, pod).outbound)
        for mapper in mappers
    ]
    assert told[0] == told[1]
    assert told[0] == sorted(
        [
            ("127.0.0.1", 8080, False),
            ("127.0.0.1", 8080, False),
            ("::1", 8080, False),
            ("127.0.0.1", full, False),  # the one that fills the queue
            ("127.0.0.1", full, True),
        ]
    )


def test_an_mptcp_listener_is_one_for_both(
    host: Host, pod: Pod, mappers: tuple[Mapper, Mapper], mptcp: int
) -> None:
    inode = pod.number(f"listen('0.0.0.0', 8080, protocol={mptcp})")
    for mapper in mappers:
        assert [(one.inode, one.port) for one in baseline(mapper, pod).listeners] == [(inode, 8080)]


def test_a_listener_that_no_process_holds_goes_only_when_its_namespace_lacks_it(
    pod: Pod, mapper: str
) -> None:
    # in flight in a unix socket: the iterators, which walk descriptor tables, cannot see it
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        inode = pod.number("listen('0.0.0.0', 8080)")
        agent.await_ports(pod.uid, 8080)
        pod.run(
            "mine, theirs = socket.socketpair(socket.AF_UNIX)\n"
            f"socket.send_fds(mine, [b'x'], [KEPT[{inode}].fileno()]); close({inode})"
        )
        agent.await_publish(5)
        assert agent.ports(pod.uid) == [8080]
        pod.run("mine.close(); theirs.close()")
        agent.await_ports(pod.uid)


def test_a_process_that_ends_between_two_reads_is_no_error(
    host: Host, pod: Pod, mappers: tuple[Mapper, Mapper]
) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    short = host.beside(pod)
    for mapper in mappers:
        place = place_of(mapper, pod.uid)
    short.end()
    for mapper in mappers:
        ((_, sockets),) = mapper.baselines([place], lambda _uid: NOTHING)
        assert sockets is not None
        assert [one.inode for one in sockets.listeners] == [inode]


def test_a_pod_without_any_process_stays_in_the_view_and_is_not_complete(
    host: Host, pod: Pod, mapper: str
) -> None:
    pod.run("listen('0.0.0.0', 8080)")
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        assert agent.known(pod.uid).complete
        pod.end()
        until(lambda: not agent.known(pod.uid).complete, "the pod is not mapped any more")
        assert agent.ports(pod.uid) == []


def test_port_258_is_not_513(host: Host, pod: Pod, mappers: tuple[Mapper, Mapper]) -> None:
    pod.run("listen('0.0.0.0', 258)")
    for mapper in mappers:
        assert [one.port for one in baseline(mapper, pod).listeners] == [258]
    assert pod.number("connect('127.0.0.1', 513)") == errno.ECONNREFUSED


def test_millions_of_files_that_are_no_sockets_end_no_reading(
    host: Host, mappers: tuple[Mapper, Mapper]
) -> None:
    # the kernel's iterator pauses after a million files without a row
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 100_000)
    crowd = host.process(host.group("system.slice/crowd.service"))
    crowd.run(f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))")
    crowd.run(f"held = [os.dup(0) for _ in range({most - 50})]")
    for _ in range(2_500_000 // most):
        crowd.run("child('pass')")
    late = host.pod()
    late.run("listen('0.0.0.0', 8080)")
    _, by_iter = mappers
    assert [one.port for one in baseline(by_iter, late).listeners] == [8080]


def test_a_pass_over_files_that_costs_too_much_is_said_and_nothing_is_complete(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (5, 11):
        pytest.skip("kernel: no iterator of sockets before 5.11")
    monkeypatch.setattr("pacto_agent.iterators.PASS_SECONDS", 0.0)
    pod.run("listen('0.0.0.0', 8080)")
    with watching(options(mapper="iter", resync=0.3)) as agent:
        agent.await_publish()
        collection = agent.view.collection
        assert collection.reason is CollectionReason.RESYNC_FAILED
        assert "--mapper proc" in collection.message
        assert not agent.view.pods, "what could not be read is not claimed"
