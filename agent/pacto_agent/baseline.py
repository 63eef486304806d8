# SPDX-License-Identifier: MIT
"""The sockets that one network namespace holds now, read through any live process of it.

Called by the agent's resync; never goes through /proc/PID/root. What it reads heals what events
lost, and is older than every event that came after the reading began.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from pacto_agent.flows import Connection, ListeningSocket, Sockets, address_text
from pacto_native.procnet import scan_sockets
from pacto_native.rows import SocketRow

CHUNK_BYTES: Final = 64 << 10
TABLES: Final = ("tcp", "tcp6")

ESTABLISHED: Final = 1
SYN_SENT: Final = 2
LISTENING: Final = 10


@dataclass(slots=True)
class _Rows:
    kept: list[SocketRow] = field(default_factory=list)
    malformed: int = 0


def read_sockets(proc: str, pids: Iterable[int], stop: Callable[[], bool] = lambda: False) -> Sockets | None:
    """The namespace of the first of `pids` that still lives; None when none does.

    `stop` is asked between pieces: a shutdown need not wait for a namespace of 50,000 sockets.
    """
    for pid in pids:
        rows = _Rows()
        try:
            for table in TABLES:
                _read_table(os.path.join(proc, str(pid), "net", table), rows, stop)
        except (FileNotFoundError, ProcessLookupError):
            continue
        return _sort_out(rows)
    return None


def _read_table(path: str, rows: _Rows, stop: Callable[[], bool]) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.endswith("6") and os.path.exists(path[:-1]):
            return  # a kernel without IPv6
        raise
    try:
        tail = b""
        while not stop() and (piece := os.read(descriptor, CHUNK_BYTES)):
            text = tail + piece
            found, malformed, used = scan_sockets(text)
            rows.kept += found
            rows.malformed += malformed
            tail = text[used:]
    finally:
        os.close(descriptor)


def _sort_out(rows: _Rows) -> Sockets:
    listeners = tuple(
        ListeningSocket(inode, address_text(local), port)
        for state, _, local, port, _, _, _, inode in rows.kept
        if state == LISTENING and inode and port
    )
    served = {socket.port for socket in listeners}
    outbound = tuple(
        Connection(address_text(remote), remote_port, pending=state == SYN_SENT)
        for state, _, _, port, remote, remote_port, retransmits, _ in rows.kept
        if (state == ESTABLISHED and port not in served) or (state == SYN_SENT and retransmits)
    )
    return Sockets(listeners, outbound, rows.malformed)
