# SPDX-License-Identifier: MIT
"""Real outbound connections through the whole agent: what a pod's peers say, and what is nobody's."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kubectl_pacto.model.node import FailureReason
from tests.support.agents import MemorySink, Watched, options, watching
from tests.support.hosts import Host, Pod, until


@pytest.fixture
def agent(pod: Pod, mapper: str) -> Iterator[Watched]:
    """An agent that knows the pod."""
    with watching(options(mapper=mapper)) as watched:
        assert watched.known(pod.uid).complete
        yield watched


def test_successes_and_failures_are_counted_per_peer(agent: Watched, pod: Pod) -> None:
    before = time.time()
    pod.run("serve('::', 8080, v6only=False)")
    pod.run(
        "connect_many('127.0.0.1', 8080, 7); connect_many('::1', 8080, 5); connect_many('127.0.0.1', 9, 3)"
    )
    until(lambda: agent.counted(pod.uid, "127.0.0.1", 9).failed == 3, "three failures")
    assert agent.peer(pod.uid, "127.0.0.1", 8080).succeeded == 7
    assert agent.peer(pod.uid, "::1", 8080).succeeded == 5
    refused = agent.peer(pod.uid, "127.0.0.1", 9)
    assert (refused.succeeded, refused.failure_reason) == (0, FailureReason.REFUSED)
    for told in (refused.last_failure, agent.peer(pod.uid, "::1", 8080).last_success):
        assert told is not None
        assert before - 0.01 <= told <= time.time()


def test_an_abort_is_counted_apart(agent: Watched, pod: Pod) -> None:
    port = pod.number("black_hole()")
    pod.run(f"close(start_connecting('127.0.0.1', {port}))")
    until(lambda: agent.counted(pod.uid, "127.0.0.1", port).aborted == 1, "the abort")
    assert agent.peer(pod.uid, "127.0.0.1", port).failed == 0


def test_connections_open_at_a_resync_are_told_and_no_longer_once_closed(
    host: Host, pod: Pod, mapper: str
) -> None:
    client = host.process(pod.group, pod.pid)
    pod.run("listen('0.0.0.0', 8080)")
    inodes = [client.number("open_connection('127.0.0.1', 8080)") for _ in range(3)]
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        until(lambda: agent.counted(pod.uid, "127.0.0.1", 8080).open == 3, "three open connections")
        assert len(agent.known(pod.uid).peers) == 1, "the accepted ends are no peers"
        client.run(f"close({inodes[0]}, {inodes[1]}, {inodes[2]})")
        until(lambda: agent.counted(pod.uid, "127.0.0.1", 8080).open == 0, "none open")
        assert agent.known(pod.uid).peers, "a peer that was open a moment ago is still known"


def test_a_long_silence_is_told_as_pending_before_the_kernel_gives_up(
    host: Host, pod: Pod, mapper: str
) -> None:
    port = pod.number("black_hole()")
    inode = pod.number(f"start_connecting('127.0.0.1', {port})")
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        until(
            lambda: agent.peer(pod.uid, "127.0.0.1", port).failure_reason is FailureReason.PENDING,
            "a pending peer",
        )
        pod.run(f"close({inode})")
        until(lambda: agent.counted(pod.uid, "127.0.0.1", port).failed == 1, "the failure")
        assert agent.peer(pod.uid, "127.0.0.1", port).failure_reason is FailureReason.TIMEOUT


def test_events_of_a_pod_from_before_its_map_are_not_lost(agent: Watched, host: Host) -> None:
    late = host.pod()
    late.run("serve('127.0.0.1', 8080); connect_many('127.0.0.1', 8080, 7); connect_many('127.0.0.1', 9, 3)")
    until(lambda: agent.counted(late.uid, "127.0.0.1", 9).failed == 3, "failures of a new pod")
    assert agent.peer(late.uid, "127.0.0.1", 8080).succeeded == 7


def test_a_container_that_crashes_at_once_still_tells_what_it_could_not_reach(
    agent: Watched, host: Host, pod: Pod
) -> None:
    # its cgroup is younger than the map and is gone before the next one
    group = host.pod_group(pod.uid)
    crashing = host.process(group, pod.pid)
    crashing.run("connect('127.0.0.1', 9)")
    crashing.end()
    group.rmdir()
    until(lambda: agent.counted(pod.uid, "127.0.0.1", 9).failed == 1, "the failure of a crashed container")


def test_the_nodes_own_connections_are_nobodys(agent: Watched, host: Host, pod: Pod) -> None:
    node = host.process(host.group("system.slice/kubelet.service"))
    number = node.number("port(serve('127.0.0.1', 0))")
    before = agent.foreign
    node.run(f"connect_many('127.0.0.1', {number}, 20)")
    pod.run("connect('127.0.0.1', 9)")
    until(lambda: agent.counted(pod.uid, "127.0.0.1", 9).failed == 1, "a later event")
    assert all(peer.port != number for one in agent.view.pods for peer in one.peers)
    assert agent.foreign == before


def test_sockets_that_no_process_and_no_cgroup_of_this_node_names_are_counted_apart(
    host: Host, pod: Pod, mapper: str
) -> None:
    # as another node's on the same kernel: the cgroup is gone, and nobody is in the namespace any more
    stranger, group = host.process(None, 0), host.group("gone")
    stranger.run(f"join({str(group)!r}); made = [socket.socket() for _ in range(5)]")
    stranger.run(f"join({str(host.root)!r}); enter_netns({host.process().pid})")
    group.rmdir()
    with watching(options(mapper=mapper)) as agent:
        before = agent.unattributed
        stranger.run("[one.connect_ex(('127.0.0.1', 9)) for one in made]")
        until(lambda: agent.unattributed >= before + 5, "five events that nothing names")
        assert agent.known(pod.uid).complete


def test_a_later_agent_takes_over_what_an_earlier_one_knew(host: Host, pod: Pod, mapper: str) -> None:
    sink = MemorySink()
    with watching(options(mapper=mapper), sink) as first:
        pod.run("connect_many('127.0.0.1', 9, 3)")
        until(lambda: first.counted(pod.uid, "127.0.0.1", 9).failed == 3, "three failures")
    with watching(options(mapper=mapper), sink) as second:
        assert second.peer(pod.uid, "127.0.0.1", 9).failed == 3
        pod.run("connect('127.0.0.1', 9)")
        until(lambda: second.counted(pod.uid, "127.0.0.1", 9).failed == 4, "one more failure")


def test_two_agents_at_once_see_the_same(host: Host, pod: Pod) -> None:
    with watching(options(mapper="proc")) as one, watching(options()) as two:
        pod.run("serve('127.0.0.1', 8080); connect_many('127.0.0.1', 8080, 101)")
        for agent in (one, two):
            until(lambda: agent.counted(pod.uid, "127.0.0.1", 8080).succeeded == 101, "all connections")  # noqa: B023
            agent.await_ports(pod.uid, 8080)
