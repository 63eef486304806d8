# SPDX-License-Identifier: MIT
"""The kernel program of this agent: loaded, attached, read, and closed in reverse.

Called by the agent alone. Opening goes step by step on a stack, so a
half-opened tracer never escapes. The reading thread runs without the GIL.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from kubectl_pacto.errors import (
    AttachFailed,
    KernelWithoutBTF,
    LoadFailed,
    RingBufferFailed,
)
from pacto_agent import limits
from pacto_agent.flows import (
    ClockPair,
    ConnectionSums,
    Cut,
    ListenEvent,
    connection_sums,
    cut_of,
    listen_event,
)
from pacto_agent.libbpf import Libbpf, load_failed, load_libbpf
from pacto_agent.objectfile import FLOW, RECORD, checked_image
from pacto_native.rows import LISTEN, UNLISTEN

BTF_PATH: Final = "/sys/kernel/btf/vmlinux"
POLL_MS: Final = 1000
SLICE_ROWS: Final = 500
PROGRAM: Final = "on_state"

_T = TypeVar("_T")


class Tracer:
    """A running kernel program and its reader; `close` may be called twice."""

    def __init__(self, bpf: Libbpf, reader: Any, program: Any, undo: ExitStack) -> None:
        self._bpf = bpf
        self._reader = reader
        self._program = program
        self._undo = undo
        self._thread = threading.Thread(target=self._read, name="ring reader", daemon=True)
        self._problem = ""

    def start(self, poll_ms: int = POLL_MS) -> None:
        """Begin to read; events before it wait in the ring."""
        self._poll_ms = poll_ms
        self._thread.start()

    def _read(self) -> None:
        try:
            self._reader.run(self._poll_ms)
        except OSError as error:
            self._problem = f"{errno.errorcode.get(error.errno or 0, '?')}: {os.strerror(error.errno or 0)}"

    @property
    def problem(self) -> str:
        """Why reading ended, empty while it goes on."""
        return self._problem

    def silent_seconds(self) -> float:
        """Since when the reader made no pass."""
        passed = self._reader.passed_ms
        return time.monotonic() - passed / 1000 if passed else 0.0

    def drain(self) -> None:
        """Read all that is in the ring now; raises RingBufferFailed."""
        try:
            self._reader.drain()
        except OSError as error:
            raise RingBufferFailed(problem=os.strerror(error.errno or 0)) from error

    def take(self) -> tuple[list[ListenEvent], Iterator[list[ConnectionSums]], list[Cut]]:
        """What came since the last call: listen events in their order, connections in slices, who had more.

        Between slices the caller may let others run: a CPU quota must not park the reader behind
        one long piece of Python.
        """
        clocks = ClockPair(time.monotonic_ns() // 1_000_000, time.time())
        logged, used = self._reader.take()
        listens = [listen_event(row) for row in self._reader.listens(0, logged)]
        cuts = [cut_of(row, clocks) for row in self._reader.cuts()]
        return listens, self._slices(used, clocks), cuts

    def _slices(self, used: int, clocks: ClockPair) -> Iterator[list[ConnectionSums]]:
        for start in range(0, used, SLICE_ROWS):
            rows = self._reader.connections(start, start + SLICE_ROWS)
            yield [connection_sums(row, clocks) for row in rows]

    def lost(self) -> tuple[int, int]:
        """(listen events, connection events) lost since the start, wherever it happened.

        What was cut of one origin is not among them: it says nothing about another's.

        A run that the kernel skipped could have been any of the four kinds, but only connection
        events come from softirqs, which alone interrupt the program.
        """
        lost = self._reader.lost
        misses = max(0, self._bpf.lib.pacto_recursion_misses(self._program))
        listens = lost[LISTEN] + lost[UNLISTEN]
        return listens, sum(lost) - listens + misses + self._reader.malformed

    def close(self) -> None:
        """Stop reading, detach, unload, in the reverse order of opening."""
        self._reader.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._undo.close()


def open_tracer(*, btf_path: str = BTF_PATH) -> Tracer:
    """Load and attach the program; raises LoadFailed, AttachFailed or RingBufferFailed."""
    bpf = load_libbpf()
    from pacto_native.ring import FLOW_BYTES, FlowReader

    image = checked_image(FLOW, {RECORD: FLOW_BYTES})
    if not os.path.exists(btf_path):
        raise KernelWithoutBTF(path=btf_path)
    limits.raise_memlock()
    bpf.lib.pacto_keep_log()
    with ExitStack() as undo:
        loaded = _load(bpf, image, undo)
        program = bpf.lib.bpf_program__fd(bpf.lib.bpf_object__find_program_by_name(loaded, PROGRAM.encode()))
        reader = FlowReader()  # this frame holds it, then the Tracer: it must outlive the ring
        _connect(bpf, reader, loaded, undo)
        _attach(bpf, loaded, undo)
        return Tracer(bpf, reader, program, undo.pop_all())
    raise AssertionError("an ExitStack does not swallow")


def _load(bpf: Libbpf, image: bytes, undo: ExitStack) -> Any:
    """The loaded object; where lockdown forbids the cgroup's probe read, without the cgroup."""
    failure = LoadFailed(problem="libbpf gave no reason")
    for with_cgroup in (True, False):
        loaded = bpf.lib.pacto_open(image, len(image))
        if loaded == bpf.ffi.NULL:
            raise load_failed(bpf, bpf.ffi.errno)
        _set_switch(bpf, loaded, with_cgroup)
        result = bpf.lib.bpf_object__load(loaded)
        if result == 0:
            undo.callback(bpf.lib.bpf_object__close, loaded)
            return loaded
        bpf.lib.bpf_object__close(loaded)
        failure = load_failed(bpf, -result) if with_cgroup else failure
        if -result != errno.EINVAL or not limits.lockdown_confidential():
            break
    raise failure


def _set_switch(bpf: Libbpf, loaded: Any, with_cgroup: bool) -> None:
    """Set the program's read-only switches, before it is loaded."""
    section = bpf.lib.bpf_object__find_map_by_name(loaded, b".rodata")
    size = bpf.ffi.new("size_t *")
    value = bpf.ffi.cast("unsigned char *", bpf.lib.bpf_map__initial_value(section, size))
    value[0] = with_cgroup  # read_cgroup is the section's only variable; a test holds it to that


def _connect(bpf: Libbpf, reader: Any, loaded: Any, undo: ExitStack) -> None:
    def descriptor(name: bytes) -> int:
        return int(bpf.lib.bpf_map__fd(bpf.lib.bpf_object__find_map_by_name(loaded, name)))

    def address(name: str) -> int:
        return int(bpf.ffi.cast("uintptr_t", bpf.ffi.addressof(bpf.lib, name)))

    ring = bpf.lib.pacto_ring_new(descriptor(b"flows"), reader.callback, reader.context)
    if ring == bpf.ffi.NULL:
        raise RingBufferFailed(problem=os.strerror(bpf.ffi.errno))
    undo.callback(bpf.lib.ring_buffer__free, ring)
    _or_raise(
        lambda: reader.connect(
            ring=int(bpf.ffi.cast("uintptr_t", ring)),
            ring_epoll=bpf.lib.ring_buffer__epoll_fd(ring),
            lost_fd=descriptor(b"flows_lost"),
            spilled_fd=descriptor(b"flows_spilled"),
            cpus=bpf.lib.libbpf_num_possible_cpus(),
            consume=address("ring_buffer__consume"),
            lookup=address("bpf_map_lookup_elem"),
            lookup_and_delete_batch=address("pacto_lookup_and_delete_batch"),
        )
    )


def _or_raise(step: Callable[[], _T]) -> _T:
    try:
        return step()
    except OSError as error:
        raise RingBufferFailed(problem=os.strerror(error.errno or 0)) from error


def _attach(bpf: Libbpf, loaded: Any, undo: ExitStack) -> None:
    link = bpf.lib.bpf_program__attach(bpf.lib.bpf_object__find_program_by_name(loaded, PROGRAM.encode()))
    if link == bpf.ffi.NULL:
        raise AttachFailed(problem=os.strerror(bpf.ffi.errno))
    undo.callback(bpf.lib.bpf_link__destroy, link)
