# SPDX-License-Identifier: MIT
"""Outcomes of real connections: which are told, as what, and which are none of the peer's doing."""

from __future__ import annotations

import errno
import time

import pytest

from kubectl_pacto.model.node import FailureReason
from tests.support.events import Outcome, Recorder
from tests.support.hosts import Host, Pod, Worker, group_id, until
from tests.support.require import require_programs

FAMILIES = [
    pytest.param("127.0.0.1", "127.0.0.1", id="IPv4"),
    pytest.param("::1", "::1", id="IPv6"),
    pytest.param("::ffff:127.0.0.1", "127.0.0.1", id="IPv4-mapped"),
]
REFUSED = Outcome(failed=1, reason=FailureReason.REFUSED)
TIMEOUT = Outcome(failed=1, reason=FailureReason.TIMEOUT)
UNREACHABLE = Outcome(failed=1, reason=FailureReason.UNREACHABLE)
ABORTED = Outcome(aborted=1)
ROUTE = {"198.51.100.1": "198.51.100.0/24", "2001:db8::1": "2001:db8::/32"}


@pytest.mark.parametrize(("asked", "told"), FAMILIES)
def test_a_connection_is_told_once_with_the_peer_that_was_asked(
    pod: Pod, recorder: Recorder, asked: str, told: str
) -> None:
    pod.run("serve('::', 258, v6only=False)")
    assert pod.number(f"connect({asked!r}, 258)") == 0
    assert recorder.outcomes(pod) == {(told, 258): Outcome(succeeded=1)}


@pytest.mark.parametrize(("asked", "told"), FAMILIES)
def test_a_refused_connection_failed_and_did_not_succeed(
    pod: Pod, recorder: Recorder, asked: str, told: str
) -> None:
    assert pod.number(f"connect({asked!r}, 9)") == errno.ECONNREFUSED
    assert recorder.outcomes(pod) == {(told, 9): REFUSED}


def test_a_connection_is_named_by_the_cgroup_that_made_its_socket(pod: Pod, recorder: Recorder) -> None:
    assert pod.group is not None
    pod.run("connect('127.0.0.1', 9)")
    assert {one.cgroup_id for one in recorder.sums(pod)} == {group_id(pod.group)}


def test_times_are_those_of_the_events(pod: Pod, recorder: Recorder) -> None:
    before = time.time()
    pod.run("serve('127.0.0.1', 8080); connect('127.0.0.1', 8080); connect('127.0.0.1', 9)")
    after = time.time()
    time.sleep(0.2)  # the ring is read later
    for one in recorder.sums(pod):
        told = one.last_success or one.last_failure or 0.0
        assert before - 0.01 <= told <= after + 0.01


def test_a_connection_that_sends_nothing_is_a_success_and_no_failure(pod: Pod, recorder: Recorder) -> None:
    pod.run("listen('127.0.0.1', 8080)")
    inode = pod.number("open_connection('127.0.0.1', 8080)")
    pod.run(f"close({inode})")
    assert recorder.outcomes(pod) == {("127.0.0.1", 8080): Outcome(succeeded=1)}


@pytest.mark.parametrize(("asked", "told"), FAMILIES)
def test_silence_until_the_kernel_gives_up_is_a_timeout(
    pod: Pod, recorder: Recorder, asked: str, told: str
) -> None:
    pod.run("sysctl('ipv4/tcp_syn_retries', '1')")
    port = pod.number(f"black_hole({asked!r})" if "ffff" not in asked else "black_hole('127.0.0.1')")
    recorder.gather()
    recorder.all_sums.clear()
    assert pod.number(f"connect({asked!r}, {port})") == errno.ETIMEDOUT
    assert recorder.outcomes(pod) == {(told, port): TIMEOUT}


@pytest.mark.parametrize(("patience", "told"), [(0.0, ABORTED), (0.3, ABORTED), (1.8, TIMEOUT)])
def test_giving_up_is_an_abort_before_the_first_retransmission_and_a_timeout_after_it(
    pod: Pod, recorder: Recorder, patience: float, told: Outcome
) -> None:
    port = pod.number("black_hole()")
    recorder.gather()
    recorder.all_sums.clear()
    inode = pod.number(f"start_connecting('127.0.0.1', {port})")
    time.sleep(patience)
    assert recorder.outcomes(pod) == {}, "an attempt is no outcome"
    pod.run(f"close({inode})")
    assert recorder.outcomes(pod) == {("127.0.0.1", port): told}


def test_a_caller_killed_while_it_connects_aborted(host: Host, pod: Pod, recorder: Recorder) -> None:
    port = pod.number("black_hole()")
    recorder.gather()
    recorder.all_sums.clear()
    caller = host.beside(pod)
    caller.run(f"start_connecting('127.0.0.1', {port})")
    caller.end()
    assert recorder.await_outcome(pod, "127.0.0.1", port) == ABORTED


def test_a_reset_after_the_handshake_is_a_success(pod: Pod, recorder: Recorder) -> None:
    inode = pod.number("listen('127.0.0.1', 8080)")
    connection = pod.number("open_connection('127.0.0.1', 8080)")
    pod.run(f"accepted = KEPT[{inode}].accept()[0]")
    pod.run("accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))")
    pod.run("accepted.close()")
    # the reset comes by a softirq, which may wait for its CPU
    asked = f"KEPT[{connection}].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)"
    until(lambda: pod.run(asked) == errno.ECONNRESET, "the reset")
    assert recorder.outcomes(pod) == {("127.0.0.1", 8080): Outcome(succeeded=1)}


def test_the_second_attempt_of_one_socket_is_told_by_itself(pod: Pod, recorder: Recorder) -> None:
    pod.run("again = socket.socket(); first = again.connect_ex(('127.0.0.1', 8080))")
    assert pod.number("first") == errno.ECONNREFUSED
    pod.run("serve('127.0.0.1', 8080)")
    assert pod.number("again.connect_ex(('127.0.0.1', 8080))") == 0
    assert recorder.outcomes(pod) == {
        ("127.0.0.1", 8080): Outcome(succeeded=1, failed=1, reason=FailureReason.REFUSED)
    }


def test_no_free_source_port_says_nothing_about_the_peer(pod: Pod, recorder: Recorder) -> None:
    pod.run("sysctl('ipv4/ip_local_port_range', '40000 40001')")
    pod.run("listen('127.0.0.1', 8080)")
    # half the range may be kept for bind(): take it until connect() finds none
    pod.run("results = [fresh('127.0.0.1') for _ in range(3)]")
    outcomes = pod.run("[one.connect_ex(('127.0.0.1', 8080)) for one in results]")
    assert outcomes == [0, 0, errno.EADDRNOTAVAIL]
    assert recorder.outcomes(pod) == {("127.0.0.1", 8080): Outcome(succeeded=2)}


def test_without_a_route_there_is_no_event(pod: Pod, recorder: Recorder) -> None:
    assert pod.number("connect('192.0.2.1', 80)") == errno.ENETUNREACH
    assert recorder.outcomes(pod) == {}


@pytest.mark.parametrize("kind", ["unreachable", "prohibit", "blackhole"])
def test_a_route_of_this_host_that_refuses_is_no_event(pod: Pod, recorder: Recorder, kind: str) -> None:
    require_programs("kernel", "ip")
    pod.run(f"ip('route add {kind} 192.0.2.0/24')")
    assert pod.number("connect('192.0.2.1', 80)") != 0
    assert recorder.outcomes(pod) == {}


def test_a_neighbour_that_does_not_answer_is_unreachable(pod: Pod, recorder: Recorder) -> None:
    require_programs("kernel", "ip")
    pod.run(
        "ip('link add one type veth peer name two')\n"
        "ip('link set two up'); ip('link set one up'); ip('addr add 192.0.2.1/24 dev one')"
    )
    assert pod.number("connect('192.0.2.9', 80)") == errno.EHOSTUNREACH
    assert recorder.outcomes(pod) == {("192.0.2.9", 80): UNREACHABLE}


@pytest.mark.parametrize("kind", ["unreachable", "prohibit"])
@pytest.mark.parametrize(("behind", "error"), [("198.51.100.1", errno.EHOSTUNREACH), ("2001:db8::1", None)])
def test_an_icmp_error_ends_a_blocking_connect_at_its_first_retransmission(
    host: Host, pod: Pod, recorder: Recorder, behind: str, error: int | None, kind: str
) -> None:
    _behind_a_router(host, pod, f"ip('route add {kind} {ROUTE[behind]}')")
    told = pod.number(f"fresh({behind!r}).connect_ex(({behind!r}, 80))")
    assert told == error or (error is None and told in (errno.ENETUNREACH, errno.EACCES))
    assert recorder.outcomes(pod) == {(behind, 80): UNREACHABLE}


@pytest.mark.parametrize("kind", ["unreachable", "prohibit"])
@pytest.mark.parametrize("behind", ["198.51.100.1", "2001:db8::1"])
def test_an_icmp_error_that_a_non_blocking_caller_has_read_is_no_abort(
    host: Host, pod: Pod, recorder: Recorder, behind: str, kind: str
) -> None:
    # poll() says so at once, SO_ERROR gives the soft error and clears it, and the caller closes
    _behind_a_router(host, pod, f"ip('route add {kind} {ROUTE[behind]}')")
    assert pod.number(f"connect({behind!r}, 80)") in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES)
    assert recorder.outcomes(pod) == {(behind, 80): UNREACHABLE}


@pytest.mark.parametrize("blocking", [True, False])
def test_a_cluster_address_without_endpoints_refuses(
    host: Host, pod: Pod, recorder: Recorder, blocking: bool
) -> None:
    # as kube-proxy answers for such a Service: ICMP port unreachable
    require_programs("kernel", "nft")
    rules = "table ip t { chain c { type filter hook forward priority 0; tcp dport 80 reject; }; }"
    onwards = "ip('route add 198.51.100.0/24 via 192.0.2.9')"
    _behind_a_router(host, pod, f"subprocess.run(['nft', {rules!r}], check=True); {onwards}")
    wait = "fresh('127.0.0.1').connect_ex(('198.51.100.1', 80))"
    assert pod.number(wait if blocking else "connect('198.51.100.1', 80)") == errno.ECONNREFUSED
    assert recorder.outcomes(pod) == {("198.51.100.1", 80): REFUSED}


@pytest.mark.parametrize("kind", ["unreachable", "prohibit"])
def test_a_caller_that_gives_up_after_an_icmp_error_found_the_peer_unreachable(
    host: Host, pod: Pod, recorder: Recorder, kind: str
) -> None:
    _behind_a_router(host, pod, f"ip('route add {kind} 198.51.100.0/24')")
    # a blocking connect: while the socket is locked inside it, the first ICMP error is soft alone
    pod.run(
        "waiting = socket.socket()\n"
        "waiting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 400000))\n"
        "result = waiting.connect_ex(('198.51.100.1', 80)); waiting.close()"
    )
    assert recorder.outcomes(pod) == {("198.51.100.1", 80): UNREACHABLE}


def _behind_a_router(host: Host, pod: Pod, setup: str) -> None:
    """A second namespace routes for the pod, and is set up not to."""
    router = host.process(None, 0)
    _cable(router, pod)
    router.run("sysctl('ipv4/ip_forward', '1'); sysctl('ipv6/conf/all/forwarding', '1')")
    router.run("sysctl('ipv4/icmp_ratelimit', '0'); sysctl('ipv6/icmp/ratelimit', '0')")
    router.run(f"import subprocess; {setup}")
    pod.run("ip('route add default via 192.0.2.1'); ip('route add default via fd00::1')")


def _cable(one: Worker, two: Worker) -> None:
    """Join two namespaces: 192.0.2.1 and fd00::1 here, .2 and ::2 there."""
    require_programs("kernel", "ip")
    one.run(f"ip('link add one type veth peer name two netns {two.pid}')")
    for number, end, name in ((1, one, "one"), (2, two, "two")):
        end.run(f"ip('link set {name} up'); ip('addr add 192.0.2.{number}/24 dev {name}')")
        end.run(f"ip('addr add fd00::{number}/64 dev {name} nodad')")


def test_an_accepted_connection_is_none_of_the_servers(host: Host, recorder: Recorder) -> None:
    server, client = host.pod(), host.pod()
    _cable(server, client)
    server.run("serve('0.0.0.0', 8080)")
    assert client.number("connect('192.0.2.1', 8080)") == 0
    assert recorder.outcomes(client) == {("192.0.2.1", 8080): Outcome(succeeded=1)}
    assert recorder.outcomes(server) == {}


def test_an_mptcp_connection_is_told_once(pod: Pod, recorder: Recorder, mptcp: int) -> None:
    pod.run(f"serve('127.0.0.1', 8080, protocol={mptcp}); serve('127.0.0.1', 8081)")
    for port in (8080, 8081):
        assert pod.number(f"connect('127.0.0.1', {port}, protocol={mptcp})") == 0
        assert recorder.outcome(pod, "127.0.0.1", port) == Outcome(succeeded=1)
    assert len(recorder.outcomes(pod)) == 2


def test_a_refused_mptcp_connection_is_told_once_with_its_reason(
    pod: Pod, recorder: Recorder, mptcp: int
) -> None:
    assert pod.number(f"connect('127.0.0.1', 9, protocol={mptcp})") == errno.ECONNREFUSED
    assert recorder.outcomes(pod) == {("127.0.0.1", 9): REFUSED}


def test_fast_open_connections_are_told_as_others_are(pod: Pod, recorder: Recorder) -> None:
    pod.run("sysctl('ipv4/tcp_fastopen', '3')")
    pod.run(
        "inode = listen('127.0.0.1', 8080)\n"
        "KEPT[inode].setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)\n"
        "server = KEPT[inode]\n"
        "def accepts():\n"
        "    while True:\n"
        "        one = server.accept()[0]; one.recv(1); one.close()\n"  # unread, it would reset the caller
        "import threading; threading.Thread(target=accepts, daemon=True).start()"
    )
    flag = "socket.MSG_FASTOPEN"
    ended = "one.recv(1); one.close()"  # the server's end: before it answers, a close would be an abort
    for _ in range(3):  # the first one gets the cookie
        pod.run(f"one = socket.socket(); one.sendto(b'x', {flag}, ('127.0.0.1', 8080)); {ended}")
    for _ in range(2):
        pod.run(
            "one = socket.socket(); one.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)\n"
            f"one.connect(('127.0.0.1', 8080)); one.send(b'x'); {ended}"
        )
    assert recorder.outcomes(pod) == {("127.0.0.1", 8080): Outcome(succeeded=5)}


def test_fast_open_to_nobody_is_refused(pod: Pod, recorder: Recorder) -> None:
    pod.run("one = socket.socket()")
    pod.run("try: one.sendto(b'x', socket.MSG_FASTOPEN, ('127.0.0.1', 9))\nexcept OSError: pass")
    assert recorder.outcomes(pod) == {("127.0.0.1", 9): REFUSED}


def test_a_connection_to_itself_is_no_success_of_a_server(pod: Pod, recorder: Recorder) -> None:
    pod.run("one = socket.socket(); one.bind(('127.0.0.1', 40000)); one.connect(('127.0.0.1', 40000))")
    assert recorder.outcomes(pod) == {}, "SYN_RECV lies between: nobody serves there"


@pytest.mark.parametrize("count", [1009, 10007])
def test_a_prime_number_of_connections_is_counted_exactly(pod: Pod, recorder: Recorder, count: int) -> None:
    recorder.tracer.start(poll_ms=100)
    pod.run("serve('127.0.0.1', 8080, backlog=4096)")
    assert pod.number(f"connect_many('127.0.0.1', 8080, {count})") == count
    assert recorder.outcomes(pod) == {("127.0.0.1", 8080): Outcome(succeeded=count)}


def test_a_prime_number_of_refusals_is_counted_exactly(pod: Pod, recorder: Recorder) -> None:
    recorder.tracer.start(poll_ms=100)
    assert pod.number("connect_many('127.0.0.1', 9, 1009)") == 0
    assert recorder.outcome(pod, "127.0.0.1", 9).failed == 1009
