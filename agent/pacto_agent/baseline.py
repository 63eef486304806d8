# SPDX-License-Identifier: MIT
"""The sockets that one network namespace holds now, read through any live process of it.

Called by the agent's resync; never goes through /proc/PID/root. What it reads heals what events
lost, and is older than every event that came after the reading began.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final

from pacto_agent.flows import HeldSocket, Sockets, Sorting
from pacto_native.procnet import scan_sockets

CHUNK_BYTES: Final = 64 << 10
TABLES: Final = ("tcp", "tcp6")


def read_sockets(proc: str, pids: Iterable[int], stop: Callable[[], bool] = lambda: False) -> Sockets | None:
    """The namespace of the first of `pids` that still lives; None when none does.

    `stop` is asked between pieces: a shutdown need not wait for a namespace of 50,000 sockets.
    """
    for pid in pids:
        found = Sorting()
        try:
            for table in TABLES:
                _read_table(os.path.join(proc, str(pid), "net", table), found, stop)
        except (FileNotFoundError, ProcessLookupError):
            continue
        return found.sockets()
    return None


def _read_table(path: str, into: Sorting, stop: Callable[[], bool]) -> None:
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
            rows, malformed, used = scan_sockets(text)
            for state, _, local, port, remote, remote_port, retransmits, inode in rows:
                into.add(HeldSocket(state, inode, local, port, remote, remote_port, retransmits))
            into.malformed += malformed
            tail = text[used:]
    finally:
        os.close(descriptor)
