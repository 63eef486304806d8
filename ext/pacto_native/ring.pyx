# SPDX-License-Identifier: MIT
# cython: language_level=3, boundscheck=True, wraparound=False, embedsignature=True
"""The ring's consumer: a C callback fills bounded C tables, no Python call per event.

Used by the agent's tracer alone. libbpf is driven through cffi; this module gets the addresses of
its functions and objects and links nothing of it. The plain-Python twin is reference.FlowReader.
"""

from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memcpy

from pacto_native.flow cimport (
    PACTO_KINDS,
    pacto_batch,
    pacto_buffer,
    pacto_calls,
    pacto_consume,
    pacto_entry,
    pacto_flow,
    pacto_lookup,
    pacto_origin,
    pacto_reader,
    pacto_reader_connect,
    pacto_reader_feed,
    pacto_reader_feed_spilled,
    pacto_reader_free,
    pacto_reader_new,
    pacto_reader_pass,
    pacto_reader_run,
    pacto_reader_stop,
    pacto_reader_take,
    pacto_source,
    pacto_spill,
    pacto_spill_key,
)

FLOW_BYTES = sizeof(pacto_flow)
SPILL_KEY_BYTES = sizeof(pacto_spill_key)
SPILL_BYTES = sizeof(pacto_spill)


cdef class FlowReader:
    """Owner of the C reader. One thread runs it, one other takes; both outlive neither."""

    cdef pacto_reader *reader
    cdef pacto_buffer *taken

    def __cinit__(self):
        self.reader = pacto_reader_new()
        if self.reader == NULL:
            raise MemoryError("flow reader")
        self.taken = pacto_reader_take(self.reader)

    def __dealloc__(self):
        pacto_reader_free(self.reader)

    @property
    def callback(self):
        """Address of the ring's callback, an int for cffi."""
        return <uintptr_t>&pacto_reader_feed

    @property
    def context(self):
        """Address of the callback's context, an int for cffi; it dies with this object."""
        return <uintptr_t>self.reader

    def connect(self, *, uintptr_t ring, int ring_epoll, int lost_fd, int spilled_fd, unsigned int cpus,
                uintptr_t consume, uintptr_t lookup, uintptr_t lookup_and_delete_batch):
        """Take the ring, its maps and libbpf's functions by address; raises OSError."""
        cdef pacto_calls calls
        cdef pacto_source source
        calls.consume = <pacto_consume>consume
        calls.lookup = <pacto_lookup>lookup
        calls.lookup_and_delete_batch = <pacto_batch>lookup_and_delete_batch
        source.ring = <void *>ring
        source.ring_epoll = ring_epoll
        source.lost_fd = lost_fd
        source.spilled_fd = spilled_fd
        source.cpus = cpus
        cdef int error = pacto_reader_connect(self.reader, &calls, &source)
        if error:
            raise OSError(error, "flow reader")

    def feed(self, const uint8_t[::1] record):
        """One record's bytes, as the ring's callback gets them; what is none of ours is counted."""
        cdef size_t size = record.shape[0]
        pacto_reader_feed(self.reader, <void *>&record[0] if size else <void *>self.reader, size)

    def feed_spilled(self, const uint8_t[::1] key, const uint8_t[::1] value):
        """One entry of the spill map; raises ValueError when a size is wrong."""
        cdef pacto_spill_key one
        cdef pacto_spill count
        if key.shape[0] != sizeof(one) or value.shape[0] != sizeof(count):
            raise ValueError(f"a spilled entry has {sizeof(one)} and {sizeof(count)} bytes")
        memcpy(&one, &key[0], sizeof(one))
        memcpy(&count, &value[0], sizeof(count))
        pacto_reader_feed_spilled(self.reader, &one, &count)

    def run(self, int timeout_ms):
        """Read until stop(); raises OSError. The GIL is released for the whole run."""
        cdef int error
        with nogil:
            error = pacto_reader_run(self.reader, timeout_ms)
        if error:
            raise OSError(error, "flow reader")

    def stop(self):
        """End run() at once; may be called before it, more than once and from any thread."""
        pacto_reader_stop(self.reader)

    def drain(self):
        """One pass now, beside the running thread; raises OSError."""
        cdef int error
        with nogil:
            error = pacto_reader_pass(self.reader)
        if error:
            raise OSError(error, "flow reader")

    def take(self):
        """Swap the buffers; returns (listen events, connection keys) now readable by slices."""
        with nogil:
            self.taken = pacto_reader_take(self.reader)
        return self.taken.logged, self.taken.used

    def listens(self, unsigned int start, unsigned int stop):
        """Listen and unlisten events of the taken buffer, in the order of the ring.

        Each (kind, cgroup id, cookie, netns, inode, family, address bytes, port, flags).
        """
        return [listen_row(&self.taken.log[i]) for i in range(start, min(stop, self.taken.logged))]

    def connections(self, unsigned int start, unsigned int stop):
        """Sums of the taken buffer, each (cgroup id, cookie, netns, family, address bytes, port,
        succeeded, failed, aborted, success stamp, failure stamp, reason)."""
        return [entry_row(&self.taken.entries[i]) for i in range(start, min(stop, self.taken.used))]

    def cuts(self):
        """Who passed its share in the taken buffer, each (cgroup id, cookie, netns, events cut, stamp of
        the last one)."""
        return [cut_row(&self.taken.origins[i]) for i in range(self.taken.known) if self.taken.origins[i].cut]

    @property
    def lost(self):
        """Events lost per kind since the start, in the kernel and here: (listen, unlisten, connected,
        failed)."""
        return tuple([self.reader.kernel.lost[kind] + self.reader.overflowed[kind]
                      for kind in range(PACTO_KINDS)])

    @property
    def cut(self):
        """Connection events past the share of who caused them, since the start; not among the lost."""
        return self.reader.cut

    @property
    def spilled(self):
        """Connection events that went through the spill map since the start."""
        return self.reader.kernel.spilled

    @property
    def malformed(self):
        """Records that were none of ours since the start."""
        return self.reader.malformed

    @property
    def records(self):
        """Records seen since the start."""
        return self.reader.records

    @property
    def passes(self):
        """Complete passes since the start."""
        return self.reader.passes

    @property
    def passed_ms(self):
        """Milliseconds of CLOCK_MONOTONIC at the last complete pass, 0 before the first."""
        return self.reader.passed_ms

    @property
    def error(self):
        """errno of the pass that failed, 0 while all is well."""
        return self.reader.error


cdef object address_of(const uint8_t *address, int family):
    return address[:4] if family == 4 else address[:16]


cdef tuple listen_row(pacto_flow *flow):
    return (flow.kind, flow.cgroup_id, flow.net_cookie, flow.netns, flow.stamp, flow.family,
            address_of(flow.address, flow.family), flow.port, flow.flags)


cdef tuple cut_row(pacto_origin *origin):
    return (origin.cgroup_id, origin.net_cookie, origin.netns, origin.cut, origin.stamp)


cdef tuple entry_row(pacto_entry *entry):
    return (entry.key.cgroup_id, entry.key.net_cookie, entry.key.netns, entry.key.family,
            address_of(<const uint8_t *>entry.key.address, entry.key.family), entry.key.port, entry.succeeded,
            entry.failed, entry.aborted, entry.success_stamp, entry.failure_stamp, entry.reason)
