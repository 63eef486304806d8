# SPDX-License-Identifier: MIT
"""Listen and unlisten events of real sockets: which there are, what they carry, in which order."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.events import Recorder
from tests.support.hosts import Host, Pod, group_id, until


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("0.0.0.0", "0.0.0.0"),
        ("127.0.0.1", "127.0.0.1"),
        ("::", "::"),
        ("::1", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_listener_is_told_with_its_address_port_and_inode_and_again_when_it_closes(
    pod: Pod, recorder: Recorder, bound: str, told: str
) -> None:
    # 258 is 0x0102: a port in the wrong byte order would read 513
    inode = pod.number(f"listen({bound!r}, 258, v6only={'False' if 'ffff' in bound else None})")
    pod.run(f"close({inode})")
    assert recorder.listens(pod) == [(True, inode, told, 258), (False, inode, told, 258)]


@pytest.mark.parametrize(
    ("bound", "v6only", "told"),
    [
        ("::", False, False),
        ("::", True, True),
        ("::1", None, True),
        ("0.0.0.0", None, None),
        ("::ffff:127.0.0.1", False, None),
    ],
)
def test_whether_a_listener_serves_ipv6_alone_is_told(
    pod: Pod, recorder: Recorder, bound: str, v6only: bool | None, told: bool | None
) -> None:
    pod.run(f"listen({bound!r}, 8080, v6only={v6only})")
    assert [event.socket.v6only for event in recorder.listen_events(pod)] == [told]


def test_bindv6only_of_the_namespace_makes_a_listener_ipv6_alone(pod: Pod, recorder: Recorder) -> None:
    pod.run("sysctl('ipv6/bindv6only', '1')")
    pod.run("listen('::', 8080)")
    assert [event.socket.v6only for event in recorder.listen_events(pod)] == [True]


def test_an_event_names_the_cgroup_and_the_namespace_of_its_socket(pod: Pod, recorder: Recorder) -> None:
    assert pod.group is not None
    pod.run("listen('0.0.0.0', 8080)")
    (event,) = recorder.listen_events(pod)
    assert (event.cgroup_id, event.netns) == (group_id(pod.group), pod.netns)


def test_listening_twice_is_one_event(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    pod.run(f"KEPT[{inode}].listen(5)")
    assert recorder.listens(pod) == [(True, inode, "0.0.0.0", 8080)]


def test_reading_shut_down_ends_a_listener_and_writing_does_not(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    pod.run(f"KEPT[{inode}].shutdown(socket.SHUT_WR)")
    assert len(recorder.listens(pod)) == 1
    pod.run(f"KEPT[{inode}].shutdown(socket.SHUT_RDWR)")
    assert recorder.listens(pod)[1:] == [(False, inode, "0.0.0.0", 8080)]


def test_a_listener_that_listens_again_keeps_its_inode(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    pod.run(f"KEPT[{inode}].shutdown(socket.SHUT_RDWR)")
    pod.run(f"KEPT[{inode}].listen(5)")
    assert [(began, which) for began, which, _, _ in recorder.listens(pod)] == [
        (True, inode),
        (False, inode),
        (True, inode),
    ]


def test_an_address_removed_from_a_listener_ends_it(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    disconnect = "ctypes.create_string_buffer(16)"  # AF_UNSPEC
    pod.run(f"_or_raise(_libc.connect(KEPT[{inode}].fileno(), {disconnect}, 16), 'connect')")
    assert [began for began, *_ in recorder.listens(pod)] == [True, False]


def test_a_listener_bound_to_port_zero_is_told_with_its_real_port(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('0.0.0.0', 0)")
    port = pod.number(f"port({inode})")
    pod.run(f"close({inode})")
    (listen, unlisten) = recorder.listens(pod)
    assert listen == (True, inode, "0.0.0.0", port)
    assert unlisten[:2] == (False, inode), "its port may be 0 by now, its inode is not"


def test_a_listener_that_never_bound_is_told_without_a_port(pod: Pod, recorder: Recorder) -> None:
    pod.run("unbound = socket.socket()")
    pod.run("unbound.listen(5)")
    inode = pod.number("keep(unbound)")
    assert recorder.listens(pod) == [(True, inode, "0.0.0.0", 0)]
    assert pod.number(f"port({inode})") > 0


def test_reuseport_siblings_are_told_one_by_one(pod: Pod, recorder: Recorder) -> None:
    inodes = [pod.number("listen('0.0.0.0', 8080, reuse_port=True)") for _ in range(3)]
    pod.run(f"close({inodes[1]})")
    assert [(began, inode) for began, inode, _, _ in recorder.listens(pod)] == [
        *[(True, inode) for inode in inodes],
        (False, inodes[1]),
    ]


def test_losing_a_race_for_a_port_leaves_exactly_the_winner(pod: Pod, recorder: Recorder) -> None:
    pod.run("first, second = socket.socket(), socket.socket()")
    for name in ("first", "second"):
        pod.run(f"{name}.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)")
        pod.run(f"{name}.bind(('0.0.0.0', 8080))")
    winner, loser = pod.number("keep(first)"), pod.number("keep(second)")
    pod.run("first.listen(5)")
    pod.run("try: second.listen(5)\nexcept OSError as error: failed = error.errno == errno.EADDRINUSE")
    assert pod.run("failed")
    state = {inode: began for began, inode, _, _ in recorder.listens(pod)}
    assert state == {winner: True, loser: False}


def test_a_listener_ends_with_its_last_holder_and_not_before(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('0.0.0.0', 8080)")
    holder = pod.number("child('pass')")
    pod.run(f"close({inode})")
    assert [began for began, *_ in recorder.listens(pod)] == [True]
    pod.run(f"end({holder})")
    until(lambda: len(recorder.listens(pod)) == 2, "the unlisten event")
    assert recorder.listens(pod)[1] == (False, inode, "0.0.0.0", 8080)


def test_a_child_in_another_cgroup_that_listens_on_an_inherited_socket_does_so_as_its_creator(
    host: Host, pod: Pod, recorder: Recorder
) -> None:
    assert pod.group is not None
    elsewhere = host.pod_group("elsewhere1")
    pod.run("inherited = socket.socket()")
    pod.run("inherited.bind(('0.0.0.0', 8080))")
    source = f"join({str(elsewhere)!r}); inherited.listen(5)"
    pod.run(f"child({source!r})")
    (event,) = recorder.listen_events(pod)
    assert event.cgroup_id == group_id(pod.group) != group_id(elsewhere)


def test_a_process_that_moves_to_another_cgroup_leaves_its_sockets_where_they_were_made(
    host: Host, recorder: Recorder
) -> None:
    made, later = host.pod_group("before1"), host.pod_group("later1")
    worker = host.process(made, 0)
    worker.run("old = socket.socket()")
    worker.run(f"join({str(later)!r})")
    worker.run("old.bind(('0.0.0.0', 8080)); old.listen(5)")
    worker.run("listen('0.0.0.0', 8081)")
    worker.run("old.close()")
    ids = {port: set[int]() for port in (8080, 8081)}
    for event in recorder.listen_events(worker):
        ids[event.socket.port].add(event.cgroup_id)
    assert ids == {8080: {group_id(made)}, 8081: {group_id(later)}}


def test_a_passed_listener_keeps_its_creators_cgroup_and_namespace(
    host: Host, pod: Pod, recorder: Recorder, tmp_path: Path
) -> None:
    assert pod.group is not None
    other = host.pod()
    way = str(tmp_path / "way")  # an abstract name would not cross the namespaces
    listening = other.number(f"wait_for_socket({way!r})")
    inode = pod.number("listen('0.0.0.0', 8080)")
    pod.run(f"send_socket({way!r}, {inode})")
    assert other.number(f"receive_socket({listening})") == inode
    pod.run(f"close({inode})")
    assert len(recorder.listens(pod)) == 1, "another process still holds it"
    other.run(f"close({inode})")
    assert {(e.cgroup_id, e.began) for e in recorder.listen_events(pod)} == {
        (group_id(pod.group), True),
        (group_id(pod.group), False),
    }
    assert recorder.listens(other) == []


def test_a_socket_stays_in_the_namespace_it_was_made_in(host: Host, pod: Pod, recorder: Recorder) -> None:
    wanderer = host.beside(pod)
    home, away = pod.netns, host.pod()
    wanderer.run("old = socket.socket()")
    wanderer.run(f"enter_netns({away.pid})")
    wanderer.run("old.bind(('0.0.0.0', 8080)); old.listen(5)")
    wanderer.run("listen('0.0.0.0', 8081)")
    assert [port for *_, port in recorder.listens(home)] == [8080]
    assert [port for *_, port in recorder.listens(away)] == [8081]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_ends_its_listeners(
    host: Host, pod: Pod, recorder: Recorder, number: signal.Signals
) -> None:
    server = host.beside(pod)
    inode = server.number("listen('0.0.0.0', 8080)")
    server.end(number)
    until(lambda: len(recorder.listens(pod)) == 2, "the unlisten event")
    assert recorder.listens(pod)[1] == (False, inode, "0.0.0.0", 8080)


def test_accepted_connections_are_no_listen_events(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("serve('127.0.0.1', 8080)")
    assert pod.number("connect_many('127.0.0.1', 8080, 20)") == 20
    assert recorder.listens(pod) == [(True, inode, "127.0.0.1", 8080)]


def test_connections_nobody_accepted_end_with_their_listener_silently(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('127.0.0.1', 8080)")
    pod.run("open_connection('127.0.0.1', 8080)")
    pod.run(f"close({inode})")
    assert [(began, which) for began, which, *_ in recorder.listens(pod)] == [(True, inode), (False, inode)]


def test_an_mptcp_listener_begins_and_ends_with_one_inode(pod: Pod, recorder: Recorder, mptcp: int) -> None:
    inode = pod.number(f"listen('0.0.0.0', 8080, protocol={mptcp})")
    began = recorder.listens(pod)
    assert {one[:2] for one in began} == {(True, inode)}, "both of its sockets tell, about one inode"
    pod.run(f"close({inode})")
    ended = recorder.listens(pod)[len(began) :]
    assert {one[:2] for one in ended} == {(False, inode)}


def test_twenty_namespaces_made_one_after_the_other_are_told_apart_by_their_cgroups(
    host: Host, recorder: Recorder
) -> None:
    seen: dict[int, set[int]] = {}
    for number in range(20):
        pod = host.pod(uid=f"short-lived-{number}")
        assert pod.group is not None
        pod.run("listen('0.0.0.0', 8080)")
        netns, group = pod.netns, group_id(pod.group)
        pod.end()
        seen.setdefault(netns, set()).add(group)
    recorder.gather()
    told = {event.cgroup_id for event in recorder.all_listens if event.netns in seen}
    assert told >= set().union(*seen.values())
    assert sum(len(groups) for groups in seen.values()) == 20
