# SPDX-License-Identifier: MIT
"""The sockets of one namespace read from /proc/PID/net: by any live process, in pieces, to the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pacto_agent import baseline
from pacto_agent.baseline import read_sockets
from pacto_agent.flows import Connection, ListeningSocket
from tests.support.faketree import make_proc, make_process

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTENING, ESTABLISHED, SYN_SENT, TIME_WAIT = "0A", "01", "02", "06"


def line(state: str, local: str, remote: str = "00000000:0000", *, inode: int = 1, sent: int = 0) -> str:
    """One socket as /proc/net/tcp prints it."""
    queues = f"00000000:00000000 00:00000000 {sent:08X}     0        0"
    return f"   0: {local} {remote} {state} {queues} {inode} 1 0 100\n"


def node(root: Path, tcp: str = "", tcp6: str = "") -> str:
    """A /proc with process 10 in a namespace of these sockets; process 9 has just ended."""
    proc = make_proc(root, {})
    make_process(proc, 10, {"netns": 1, "cgroup": [], "tcp": HEADER + tcp, "tcp6": HEADER + tcp6})
    return str(proc)


def test_listeners_of_both_tables_are_read(tmp_path: Path) -> None:
    v6 = "00000000000000000000000000000000"
    proc = node(
        tmp_path,
        line(LISTENING, "0100007F:0102", inode=7),
        line(LISTENING, f"{v6}:1F90", f"{v6}:0000", inode=8),
    )
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert sockets.listeners == (ListeningSocket(7, "127.0.0.1", 258), ListeningSocket(8, "::", 8080))
    assert sockets.malformed == 0


def test_listeners_without_a_file_or_a_port_are_none(tmp_path: Path) -> None:
    proc = node(tmp_path, line(LISTENING, "00000000:1F90", inode=0) + line(LISTENING, "00000000:0000"))
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert sockets.listeners == ()


def test_outbound_is_what_has_no_listener_on_its_own_port(tmp_path: Path) -> None:
    proc = node(
        tmp_path,
        line(LISTENING, "00000000:1F90", inode=7)
        + line(ESTABLISHED, "0100000A:1F90", "0200000A:C000", inode=8)  # accepted
        + line(ESTABLISHED, "0100000A:C001", "0300000A:1538", inode=9)
        + line(TIME_WAIT, "0100000A:C002", "0300000A:1538", inode=0),
    )
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert sockets.outbound == (Connection("10.0.0.3", 5432),)


def test_a_connecting_socket_counts_once_its_syn_went_out_again(tmp_path: Path) -> None:
    proc = node(
        tmp_path,
        line(SYN_SENT, "0100000A:C001", "0300000A:1538", inode=8)
        + line(SYN_SENT, "0100000A:C002", "0400000A:1538", inode=9, sent=2),
    )
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert sockets.outbound == (Connection("10.0.0.4", 5432, pending=True),)


def test_a_process_that_has_ended_is_passed_over(tmp_path: Path) -> None:
    proc = node(tmp_path, line(LISTENING, "00000000:1F90"))
    sockets = read_sockets(proc, [9, 8, 10])
    assert sockets is not None
    assert len(sockets.listeners) == 1


def test_without_a_live_process_there_is_no_answer(tmp_path: Path) -> None:
    proc = node(tmp_path)
    assert read_sockets(proc, [8, 9]) is None
    assert read_sockets(proc, []) is None


def test_a_kernel_without_ipv6_is_read_all_the_same(tmp_path: Path) -> None:
    proc = node(tmp_path, line(LISTENING, "00000000:1F90"))
    Path(proc, "10/net/tcp6").unlink()
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert [socket.port for socket in sockets.listeners] == [8080]


@pytest.mark.parametrize("chunk", [1, 7, 149, 150, 151, 4096])
def test_pieces_of_any_size_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    proc = node(
        tmp_path, "".join(line(LISTENING, f"00000000:{port:04X}", inode=port) for port in range(1, 9))
    )
    monkeypatch.setattr(baseline, "CHUNK_BYTES", chunk)
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert [socket.port for socket in sockets.listeners] == list(range(1, 9))
    assert sockets.malformed == 0


def test_malformed_lines_are_counted_and_passed_over(tmp_path: Path) -> None:
    proc = node(tmp_path, "nonsense\n" + line(LISTENING, "00000000:1F90") + "   1: 0000\n")
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert (len(sockets.listeners), sockets.malformed) == (1, 2)


def test_fifty_thousand_connections_do_not_hide_a_listener(tmp_path: Path) -> None:
    many = line(ESTABLISHED, "0100000A:1F90", "0200000A:C000", inode=8) * 50_000
    proc = node(tmp_path, many + line(LISTENING, "00000000:1F90", inode=7))
    sockets = read_sockets(proc, [10])
    assert sockets is not None
    assert (len(sockets.listeners), sockets.outbound) == (1, ())


def test_a_shutdown_need_not_wait_for_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc = node(tmp_path, line(LISTENING, "00000000:1F90", inode=7) * 1000)
    monkeypatch.setattr(baseline, "CHUNK_BYTES", 4096)
    asked = iter([False, False, *[True] * 100])
    sockets = read_sockets(proc, [10], lambda: next(asked))
    assert sockets is not None
    assert 0 < len(sockets.listeners) < 100
