# SPDX-License-Identifier: MIT
"""The way from this machine's loopback to the API server inside its network namespace.

Started as a program: it listens on loopback first and then moves itself into the control plane's
namespace. A socket stays where it was made, so it accepts here and connects there. Tests, the
plugin and any kubectl use the cluster as they would use kind's, through 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import sys
from pathlib import Path
from typing import Final

CLONE_NEWNET: Final = 0x40000000
CHUNK: Final = 65536


def listen(port: int) -> socket.socket:
    """A listening socket of the namespace this program was started in."""
    server = socket.create_server(("127.0.0.1", port), backlog=128)
    server.setblocking(False)
    return server


def enter(netns: str) -> None:
    """Move this program into another network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(descriptor, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {netns}")
    finally:
        os.close(descriptor)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction of one connection, until its end; then the half-close goes on too."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, port: int
) -> None:
    """One connection, both directions."""
    try:
        onward_reader, onward_writer = await asyncio.open_connection(address, port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(copy(reader, onward_writer), copy(onward_reader, writer))
    for end in (writer, onward_writer):
        end.close()


async def serve(netns: str, address: str, port: int, port_file: Path) -> None:
    """Listen here, connect there, for ever; the chosen port goes into a file."""
    known = int(port_file.read_text()) if port_file.exists() else 0
    listener = listen(known)
    enter(netns)
    server = await asyncio.start_server(lambda r, w: forward(r, w, address, port), sock=listener)
    unfinished = port_file.with_suffix(".part")
    unfinished.write_text(str(listener.getsockname()[1]))
    unfinished.rename(port_file)
    await server.serve_forever()


def main(netns: str, address: str, port: str, port_file: str) -> None:
    """Arguments: path of the namespace, address and port in it, file for the port chosen here."""
    asyncio.run(serve(netns, address, int(port), Path(port_file)))


if __name__ == "__main__":
    main(*sys.argv[1:])
