# SPDX-License-Identifier: MIT
"""The reader's passes and its life, over a stand-in for libbpf: no kernel program needed."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pacto_native import ring, rows
from tests.native.test_ring import flow, spilled
from tests.native.test_ring_origins import head

CONSUME = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, use_errno=True)
LOOKUP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, use_errno=True)
BATCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_int,
    *[ctypes.c_void_p] * 4,
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_void_p,
    use_errno=True,
)
FEED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
CPUS = 3


class Kernel:
    """A ring, a per-CPU counter and a spill map, all plain lists; `ready` is the ring's epoll."""

    def __init__(self, reader: ring.FlowReader) -> None:
        self.waiting: list[bytes] = []
        self.lost = [[0] * 5 for _ in range(CPUS)]
        self.map: list[tuple[bytes, bytes]] = []
        self.consume_result = 0
        self.lookup_errno = 0
        self.batch_errno = 0
        self.batches = 0
        self.ready = os.eventfd(0, os.EFD_NONBLOCK)
        self._feed = FEED(reader.callback)
        self._context = reader.context
        self._calls = CONSUME(self.consume), LOOKUP(self.lookup), BATCH(self.batch)
        addresses = [int(ctypes.cast(call, ctypes.c_void_p).value or 0) for call in self._calls]
        self.connect: Callable[[], None] = lambda: reader.connect(
            ring=1,
            ring_epoll=self.ready,
            lost_fd=11,
            spilled_fd=12,
            cpus=CPUS,
            consume=addresses[0],
            lookup=addresses[1],
            lookup_and_delete_batch=addresses[2],
        )

    def consume(self, _ring: int) -> int:
        """ring_buffer__consume: every waiting record through the callback."""
        for record in self.waiting:
            assert self._feed(self._context, record, len(record)) == 0
        self.waiting.clear()
        return self.consume_result

    def lookup(self, fd: int, _key: int, value: int) -> int:
        """bpf_map_lookup_elem of the per-CPU counter."""
        assert fd == 11
        words = [word for cpu in self.lost for word in cpu]
        ctypes.memmove(value, (ctypes.c_uint64 * len(words))(*words), 8 * len(words))
        ctypes.set_errno(self.lookup_errno)
        return -bool(self.lookup_errno)

    def batch(
        self,
        fd: int,
        start: int,
        _out: int,
        keys: int,
        values: int,
        count: ctypes._Pointer[ctypes.c_uint32],
        _opts: int,
    ) -> int:
        """bpf_map_lookup_and_delete_batch: fails with ENOENT at the end of the map, as the kernel does."""
        assert fd == 12
        assert (start is None) == (self.batches == 0)
        self.batches += 1
        taken, self.map = self.map[: count[0]], self.map[count[0] :]
        ctypes.memmove(keys, b"".join(key for key, _ in taken), 40 * len(taken))
        ctypes.memmove(values, b"".join(value for _, value in taken), 16 * len(taken))
        count[0] = len(taken)
        ctypes.set_errno(self.batch_errno or (0 if self.map else errno.ENOENT))
        return 0 if self.map and not self.batch_errno else -1


@pytest.fixture
def reader() -> ring.FlowReader:
    """A reader not yet connected."""
    return ring.FlowReader()


@pytest.fixture
def kernel(reader: ring.FlowReader) -> Iterator[Kernel]:
    """The stand-in, connected."""
    kernel = Kernel(reader)
    kernel.connect()
    yield kernel
    os.close(kernel.ready)


def test_a_pass_reads_the_ring_and_sums_the_counters(reader: ring.FlowReader, kernel: Kernel) -> None:
    kernel.waiting = [flow(), flow(rows.LISTEN), b"none of ours"]
    kernel.lost = [[1, 0, 3, 0, 0], [10, 0, 0, 4, 0], [0, 2, 0, 0, 0]]
    assert (reader.passes, reader.passed_ms) == (0, 0)
    reader.drain()
    assert reader.take() == (1, 1)
    assert reader.lost == (11, 2, 3, 4)
    assert (reader.records, reader.malformed, reader.passes, reader.error) == (3, 1, 1, 0)
    assert reader.passed_ms > 0
    assert kernel.batches == 0  # nothing was spilled: the map is not asked


def test_losses_of_the_kernel_and_of_the_table_add_up(reader: ring.FlowReader, kernel: Kernel) -> None:
    kernel.waiting = [flow(rows.LISTEN)] * (rows.LOG_ENTRIES + 5)
    kernel.lost[1] = [7, 0, 0, 0, 0]
    reader.drain()
    assert reader.lost == (12, 0, 0, 0)


@pytest.mark.parametrize("entries", [1, 255, 256, 257, 1000])
def test_spilled_entries_are_drained_to_the_last(
    reader: ring.FlowReader, kernel: Kernel, entries: int
) -> None:
    kernel.map = [spilled(rows.CONNECTED, 2, 5, 0, cgroup=number) for number in range(entries)]
    kernel.lost[0][4] = 2 * entries
    reader.drain()
    assert reader.take() == (0, entries)
    assert reader.spilled == 2 * entries
    assert {row[6] for row in reader.connections(0, entries)} == {2}
    reader.drain()
    assert kernel.batches == (entries + 255) // 256  # no rise of the counter, no second look


def test_a_head_is_drained_with_the_entries_of_its_origin(reader: ring.FlowReader, kernel: Kernel) -> None:
    made = 3 * rows.ORIGIN_SPILLED
    kernel.map = [head(made, cgroup=7, stamp=8)]
    kernel.map += [spilled(rows.CONNECTED, 1, 5, 0, port=port) for port in range(rows.ORIGIN_SPILLED)]
    kernel.lost[0][4] = made
    reader.drain()
    assert reader.take() == (0, rows.ORIGIN_PEERS)
    assert reader.cuts() == [(7, 9, 4026531840, made - rows.ORIGIN_PEERS, 8)]
    assert (reader.cut, reader.lost) == (made - rows.ORIGIN_PEERS, (0, 0, 0, 0))


@pytest.mark.parametrize("failure", ["consume_result", "lookup_errno", "batch_errno"])
def test_a_failing_call_of_libbpf_is_told_and_stops_the_pass(
    reader: ring.FlowReader, kernel: Kernel, failure: str
) -> None:
    setattr(kernel, failure, -errno.EBADF if failure == "consume_result" else errno.EBADF)
    kernel.lost[0][4] = 1
    with pytest.raises(OSError, match="flow reader") as caught:
        reader.drain()
    assert caught.value.errno == reader.error == errno.EBADF
    assert reader.passes == 0


def test_a_reader_without_a_ring_says_so(reader: ring.FlowReader) -> None:
    for call in (reader.drain, lambda: reader.run(10)):
        with pytest.raises(OSError, match="flow reader") as caught:
            call()
        assert caught.value.errno == errno.ENOTCONN


def test_a_reader_takes_one_ring_only(kernel: Kernel) -> None:
    with pytest.raises(OSError, match="flow reader") as caught:
        kernel.connect()
    assert caught.value.errno == errno.EISCONN


def test_a_reader_refuses_a_ring_without_a_descriptor(reader: ring.FlowReader) -> None:
    kernel = Kernel(reader)
    os.close(kernel.ready)
    kernel.ready = -1
    with pytest.raises(OSError, match="flow reader") as caught:
        kernel.connect()
    assert caught.value.errno == errno.EBADF


def run(reader: ring.FlowReader, timeout_ms: int) -> tuple[threading.Thread, list[OSError]]:
    """Run the reader in a thread of its own, as the agent does."""
    failures: list[OSError] = []

    def body() -> None:
        try:
            reader.run(timeout_ms)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread, failures


def test_a_wake_of_the_ring_starts_a_pass_and_stop_ends_the_run(
    reader: ring.FlowReader, kernel: Kernel
) -> None:
    kernel.waiting = [flow(port=port) for port in range(5)]
    thread, failures = run(reader, timeout_ms=60_000)
    os.eventfd_write(kernel.ready, 1)
    while reader.passes == 0:
        threading.Event().wait(0.001)
    assert reader.take() == (0, 5)
    reader.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert not failures


def test_a_timeout_starts_a_pass_too(reader: ring.FlowReader, kernel: Kernel) -> None:
    thread, failures = run(reader, timeout_ms=1)
    while reader.passes < 3:
        threading.Event().wait(0.001)
    kernel.waiting.append(flow())  # without a wake-up
    while reader.take() == (0, 0):
        threading.Event().wait(0.001)
    reader.stop()
    thread.join(10)
    assert not failures


def test_a_stop_before_the_run_ends_it_after_one_pass(reader: ring.FlowReader, kernel: Kernel) -> None:
    reader.stop()
    reader.stop()
    reader.run(60_000)
    assert reader.passes == 1
    assert kernel.waiting == []


def test_a_failure_ends_the_run(reader: ring.FlowReader, kernel: Kernel) -> None:
    kernel.lookup_errno = errno.EIO
    thread, failures = run(reader, timeout_ms=1)
    thread.join(10)
    assert [failure.errno for failure in failures] == [errno.EIO]
    assert reader.error == errno.EIO


def test_a_reader_gives_its_descriptors_back() -> None:
    def descriptors() -> int:
        gc.collect()
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = descriptors()
    kernels = [Kernel(reader) for reader in [ring.FlowReader() for _ in range(10)]]
    for kernel in kernels:
        kernel.connect()
        os.close(kernel.ready)
    del kernels, kernel
    assert descriptors() == before
