# SPDX-License-Identifier: MIT
"""The kernel's own lists of processes and TCP sockets, over all namespaces at once (Linux 5.11).

Called by mapper. Needs BPF and PERFMON and the host's pid namespace, and reads no other process's
/proc. Process numbers are the outermost namespace's: never to be joined with a nested /proc.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final

from kubectl_pacto.errors import AttachFailed, LoadFailed, ResyncFailed
from pacto_agent import limits
from pacto_agent.flows import HeldSocket
from pacto_agent.libbpf import Libbpf, load_failed, load_libbpf
from pacto_agent.objectfile import ITERATORS, PROCESS_RECORD, SOCKET_RECORD, checked_image
from pacto_agent.podmap import IdentifiedProcess

# The layouts of bpf/iter.h; sizes are checked against the object before it loads, offsets by a test.
PROCESS: Final = struct.Struct("<QQQQIIII")
SOCKET: Final = struct.Struct("<QQQ16s16sIHHBBBBI")
READ_BYTES: Final = 256 << 10
MAPPED: Final = b"\0" * 10 + b"\xff\xff"
UNSPECIFIED: Final = b"\0" * 16
NETNS: Final = 5  # in SOCKET
# The kernel looks at every open file, about a microsecond each: five million of them. At the usual
# resync interval it is a twelfth of a CPU.
PASS_SECONDS: Final = 5.0


class Iterators:
    """Both iterators, attached; `close` may be called twice."""

    def __init__(self, bpf: Libbpf, links: dict[str, Any], undo: ExitStack) -> None:
        self._bpf = bpf
        self._links = links
        self._undo = undo

    def processes(self) -> Iterator[IdentifiedProcess]:
        """Every process of this pid namespace and below; raises ResyncFailed."""
        for row in self._rows("list_processes", PROCESS):
            started, cgroup_id, v1_cgroup_id, cookie, netns, pid, parent, _ = row
            yield IdentifiedProcess(pid, parent, started, netns, cookie, cgroup_id, v1_cgroup_id)

    def sockets(self) -> Iterator[tuple[int, HeldSocket]]:
        """Every listening, established or connecting TCP socket, once, with its namespace's inode.

        Raises ResyncFailed, also for a node whose files take longer than PASS_SECONDS.
        """
        seen: set[int] = set()
        for row in self._rows("list_sockets", SOCKET):
            if row[0] not in seen:  # once per descriptor that holds it
                seen.add(row[0])
                yield row[NETNS], _socket(row)

    def _rows(self, program: str, layout: struct.Struct) -> Iterator[tuple[Any, ...]]:
        lib = self._bpf.lib
        descriptor = lib.bpf_iter_create(lib.bpf_link__fd(self._links[program]))
        if descriptor < 0:
            raise ResyncFailed(problem=f"{program}: {os.strerror(-descriptor)}")
        began = time.thread_time()
        try:
            left = b""
            while piece := _read(descriptor, lambda: _stay_within(program, time.thread_time() - began)):
                left += piece
                whole = len(left) - len(left) % layout.size
                yield from layout.iter_unpack(left[:whole])
                left = left[whole:]
        except OSError as error:
            raise ResyncFailed(problem=f"{program}: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Detach and unload."""
        self._undo.close()


def open_iterators() -> Iterators:
    """Load and attach both; raises LoadFailed or AttachFailed."""
    bpf = load_libbpf()
    image = checked_image(ITERATORS, {PROCESS_RECORD: PROCESS.size, SOCKET_RECORD: SOCKET.size})
    limits.raise_memlock()
    bpf.lib.pacto_keep_log()
    with ExitStack() as undo:
        loaded = bpf.lib.pacto_open(image, len(image))
        if loaded == bpf.ffi.NULL:
            raise load_failed(bpf, bpf.ffi.errno)
        undo.callback(bpf.lib.bpf_object__close, loaded)
        result = bpf.lib.bpf_object__load(loaded)
        if result:
            raise _not_loaded(bpf, -result)
        links = {name: _attach(bpf, loaded, name, undo) for name in ("list_processes", "list_sockets")}
        return Iterators(bpf, links, undo.pop_all())
    raise AssertionError("an ExitStack does not swallow")


def _not_loaded(bpf: Libbpf, number: int) -> LoadFailed:
    failure = load_failed(bpf, number)
    if limits.read_facts().kernel >= limits.ITERATOR_KERNEL:
        return failure
    cause = "this kernel has no iterator of sockets, Linux {}.{} has".format(*limits.ITERATOR_KERNEL)
    remedy = "choose --mapper auto or proc (nodeAgent.mapper)"
    return LoadFailed(problem=f"{cause}: {remedy}; {failure}")


def _read(descriptor: int, check: Callable[[], None]) -> bytes:
    """The next rows, empty at the end; `check` is asked before each look and may raise.

    The kernel pauses after a million files without a row, and goes on from there at the next read.
    """
    while True:
        check()
        with suppress(BlockingIOError):
            return os.read(descriptor, READ_BYTES)


def _stay_within(program: str, spent: float) -> None:
    if spent > PASS_SECONDS:
        what = f"{program} took more than {PASS_SECONDS:g} s of CPU for this node's processes and files"
        raise ResyncFailed(problem=f"{what}: choose --mapper proc (nodeAgent.mapper)")


def _attach(bpf: Libbpf, loaded: Any, name: str, undo: ExitStack) -> Any:
    program = bpf.lib.bpf_object__find_program_by_name(loaded, name.encode())
    link = bpf.lib.bpf_program__attach(program)
    if link == bpf.ffi.NULL:
        raise AttachFailed(problem=f"{name}: {os.strerror(bpf.ffi.errno)}")
    undo.callback(bpf.lib.bpf_link__destroy, link)
    return link


def _socket(row: tuple[Any, ...]) -> HeldSocket:
    inode, cgroup_id, _, local, remote, _, local_port, remote_port, state, family, v6only, sent, _ = row
    if family == 6 and local[:12] == MAPPED and (remote[:12] == MAPPED or remote == UNSPECIFIED):
        # told as IPv4, as events and /proc do
        local, remote, family = local[12:], remote[12:], 4
    size = 4 if family == 4 else 16
    return HeldSocket(
        state=state,
        inode=inode,
        local=local[:size],
        local_port=local_port,
        remote=remote[:size],
        remote_port=remote_port,
        retransmits=sent,
        v6only=bool(v6only) if family == 6 else None,
        cgroup_id=cgroup_id,
    )
