# SPDX-License-Identifier: MIT
"""Real listeners through the whole agent: what a pod's published view says, by either mapper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_pacto.model.node import CollectionState, Listener, PodReason
from tests.support.agents import Watched, options, watching
from tests.support.hosts import Host, Pod, until


@pytest.fixture
def agent(pod: Pod, mapper: str) -> Iterator[Watched]:
    """An agent that knows the pod, and resyncs from now on only when events ask for it."""
    with watching(options(mapper=mapper)) as watched:
        assert watched.known(pod.uid).complete
        yield watched


@pytest.fixture
def other(host: Host) -> Pod:
    """One more pod; asked for before the agent, it is mapped too."""
    return host.pod()


def test_a_listener_from_before_the_agent_is_in_the_first_view(host: Host, mapper: str) -> None:
    pod = host.pod()
    pod.run("listen('0.0.0.0', 8080)")
    with watching(options(mapper=mapper)) as agent:
        assert agent.known(pod.uid).listeners == (Listener("0.0.0.0", 8080),)
        assert agent.known(pod.uid).complete
        assert agent.view.collection.state is CollectionState.RUNNING
        assert agent.view.node.mapper == mapper


@pytest.mark.parametrize("systemd", [False, True])
def test_a_pod_made_after_the_agent_is_known_within_seconds(
    agent: Watched, host: Host, systemd: bool
) -> None:
    late = host.pod(systemd=systemd)
    late.run("listen('0.0.0.0', 8080)")
    agent.await_ports(late.uid, 8080)
    assert agent.known(late.uid).complete


def test_a_pod_that_opens_no_socket_is_complete_within_seconds_too(agent: Watched, host: Host) -> None:
    late = host.pod()
    agent.await_complete(late.uid)
    assert agent.known(late.uid).listeners == ()


def test_listeners_come_and_go_without_a_resync(agent: Watched, pod: Pod) -> None:
    inode = pod.number("listen('::', 258, v6only=True)")
    agent.await_ports(pod.uid, 258)
    assert Listener("::", 258, v6only=True) in agent.known(pod.uid).listeners
    pod.run(f"close({inode})")
    agent.await_ports(pod.uid)


def test_a_listener_with_port_zero_at_listen_is_found_with_its_real_port(agent: Watched, pod: Pod) -> None:
    pod.run("unbound = socket.socket(); unbound.listen(5)")
    port = pod.number("unbound.getsockname()[1]")
    agent.await_ports(pod.uid, port)
    pod.run("unbound.close()")
    agent.await_ports(pod.uid)


def test_a_listener_that_listens_again_is_known_by_its_new_port(agent: Watched, pod: Pod) -> None:
    inode = pod.number("listen('0.0.0.0', 0)")
    first = pod.number(f"port({inode})")
    agent.await_ports(pod.uid, first)
    # the old port is taken, so the kernel chooses another one
    pod.run(f"KEPT[{inode}].shutdown(socket.SHUT_RDWR); listen('0.0.0.0', {first})")
    pod.run(f"KEPT[{inode}].listen(5)")
    second = pod.number(f"port({inode})")
    assert second != first
    agent.await_ports(pod.uid, first, second)


def test_reuseport_siblings_are_one_listener_until_the_last_closes(agent: Watched, pod: Pod) -> None:
    inodes = [pod.number("listen('0.0.0.0', 8080, reuse_port=True)") for _ in range(3)]
    agent.await_ports(pod.uid, 8080)
    pod.run(f"close({inodes[0]}, {inodes[1]})")
    agent.await_publish()
    assert agent.ports(pod.uid) == [8080]
    pod.run(f"close({inodes[2]})")
    agent.await_ports(pod.uid)


def test_the_loser_of_a_race_for_a_port_takes_nothing_away(agent: Watched, pod: Pod) -> None:
    pod.run("first, second = socket.socket(), socket.socket()")
    for name in ("first", "second"):
        pod.run(f"{name}.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)")
        pod.run(f"{name}.bind(('0.0.0.0', 8080))")
    pod.run("first.listen(5)")
    pod.run("try: second.listen(5)\nexcept OSError: second.close()")
    agent.await_ports(pod.uid, 8080)
    agent.await_publish()
    assert agent.ports(pod.uid) == [8080]


def test_a_forked_holder_keeps_a_listener_until_it_ends(agent: Watched, pod: Pod) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    holder = pod.number("child('pass')")
    pod.run(f"close({inode})")
    agent.await_ports(pod.uid, 8080)
    pod.run(f"end({holder})")
    agent.await_ports(pod.uid)


def test_a_killed_server_leaves_no_listener(agent: Watched, host: Host, pod: Pod) -> None:
    server = host.beside(pod)
    server.run("listen('0.0.0.0', 8080)")
    agent.await_ports(pod.uid, 8080)
    server.end()
    agent.await_ports(pod.uid)


def test_an_mptcp_listener_is_one_listener(agent: Watched, pod: Pod, mptcp: int) -> None:
    inode = pod.number(f"listen('0.0.0.0', 8080, protocol={mptcp})")
    agent.await_ports(pod.uid, 8080)
    pod.run(f"close({inode})")
    agent.await_ports(pod.uid)


def test_an_mptcp_listener_from_before_the_agent_is_one_listener(host: Host, mapper: str, mptcp: int) -> None:
    pod = host.pod()
    inode = pod.number(f"listen('0.0.0.0', 8080, protocol={mptcp})")
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        assert agent.ports(pod.uid) == [8080]
        pod.run(f"close({inode})")
        agent.await_ports(pod.uid)


def test_a_listener_of_a_node_proxy_inside_a_pods_namespace_is_kept_out(
    host: Host, pod: Pod, mapper: str
) -> None:
    proxy = host.process(host.group("system.slice/proxy.service"), pod.pid)
    with watching(options(mapper=mapper)) as agent:
        proxy.run("listen('0.0.0.0', 15008); connect('127.0.0.1', 9)")
        pod.run("listen('0.0.0.0', 8080)")
        agent.await_ports(pod.uid, 8080)
        until(lambda: agent.foreign >= 2, "the foreign events counted")
        assert agent.ports(pod.uid) == [8080]
        assert agent.known(pod.uid).peers == ()
        assert agent.known(pod.uid).complete


def test_a_proxy_that_starts_after_the_agent_is_kept_out_too(agent: Watched, host: Host, pod: Pod) -> None:
    proxy = host.process(host.group("system.slice/proxy.service"), pod.pid)
    proxy.run("listen('0.0.0.0', 15008)")
    pod.run("listen('0.0.0.0', 8080)")
    late = host.pod()
    agent.await_complete(late.uid)
    agent.await_ports(pod.uid, 8080)


def test_another_pods_listener_inside_a_pods_namespace_is_neithers(
    host: Host, pod: Pod, other: Pod, agent: Watched
) -> None:
    visitor = host.process(other.group, pod.pid)
    visitor.run("listen('0.0.0.0', 15008)")
    pod.run("listen('0.0.0.0', 8080)")
    agent.await_ports(pod.uid, 8080)
    assert agent.ports(other.uid) == []
    assert agent.known(pod.uid).complete
    assert agent.known(other.uid).complete


def test_a_foreign_listener_stays_out_at_every_resync(host: Host, mapper: str) -> None:
    pod = host.pod()
    proxy = host.process(host.group("system.slice/proxy.service"), pod.pid)
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        agent.await_complete(pod.uid)
        proxy.run("listen('0.0.0.0', 15008)")
        pod.run("listen('0.0.0.0', 8080)")
        agent.await_ports(pod.uid, 8080)
        agent.await_publish(5)
        assert agent.ports(pod.uid) == [8080]


def test_a_helper_that_visits_a_pods_namespace_changes_nothing(host: Host, mapper: str) -> None:
    pod, other = host.pod(), host.pod()
    pod.run("listen('0.0.0.0', 8080)")
    visitor = host.process(other.group, pod.pid)
    with watching(options(mapper=mapper, resync=0.3)) as agent:
        agent.await_ports(pod.uid, 8080)
        visitor.run("netns()")
        assert agent.known(pod.uid).complete
        assert agent.known(other.uid).complete
        assert agent.ports(other.uid) == []


def test_two_pods_in_one_namespace_are_complete_neither(host: Host, mapper: str) -> None:
    pod = host.pod()
    twin = host.pod(netns=pod.pid)
    pod.run("listen('0.0.0.0', 8080)")
    with watching(options(mapper=mapper)) as agent:
        for uid in (pod.uid, twin.uid):
            assert agent.known(uid).reasons == (PodReason.SHARED_NAMESPACE,)
            assert agent.known(uid).listeners == ()


def test_a_pod_in_the_nodes_namespace_is_listed_without_listeners(host: Host, mapper: str) -> None:
    node, pod = host.pod(netns=None), host.pod()
    inode = node.number("listen('127.0.0.1', 0)")
    with watching(options(mapper=mapper)) as agent:
        agent.await_complete(pod.uid)
        assert agent.known(node.uid).reasons == (PodReason.HOST_NETWORK,)
        assert agent.known(node.uid).listeners == ()
        node.run(f"close({inode})")


def test_a_socket_made_before_the_pod_entered_its_namespace_is_not_the_pods(
    agent: Watched, host: Host, pod: Pod
) -> None:
    wanderer = host.process(pod.group)
    wanderer.run("outside = socket.socket()")
    wanderer.run(f"enter_netns({pod.pid})")
    wanderer.run("outside.bind(('127.0.0.1', 0)); outside.listen(5); listen('127.0.0.1', 8080)")
    agent.await_ports(pod.uid, 8080)


def test_a_listener_given_to_another_pod_stays_its_makers(
    pod: Pod, other: Pod, agent: Watched, tmp_path: Path
) -> None:
    way = str(tmp_path / "way")
    listening = other.number(f"wait_for_socket({way!r})")
    inode = pod.number("listen('0.0.0.0', 8080)")
    pod.run(f"send_socket({way!r}, {inode})")
    other.run(f"receive_socket({listening})")
    pod.run(f"close({inode})")
    agent.await_ports(pod.uid, 8080)
    other.run(f"close({inode})")
    agent.await_ports(pod.uid)


def test_pods_one_after_the_other_in_one_namespace_inode_are_told_apart(agent: Watched, host: Host) -> None:
    inodes: dict[str, int] = {}
    for number in range(4):
        pod = host.pod(uid=f"short-{number}")
        inodes[pod.uid] = pod.netns
        pod.run(f"listen('0.0.0.0', {8080 + number})")
        agent.await_ports(pod.uid, 8080 + number)
        for uid in inodes.keys() - {pod.uid}:
            assert 8080 + number not in agent.ports(uid)
        pod.end()


def test_a_pod_that_is_gone_leaves_the_view(agent: Watched, host: Host, pod: Pod) -> None:
    pod.end()
    assert pod.group is not None
    pod.group.rmdir()
    pod.group.parent.rmdir()
    late = host.pod()
    agent.await_complete(late.uid)
    assert agent.pod(pod.uid) is None
