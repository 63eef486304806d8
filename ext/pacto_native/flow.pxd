# SPDX-License-Identifier: MIT
"""The kernel's record and the C reader, as their headers declare them."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "flow.h":
    enum:
        PACTO_LISTEN
        PACTO_UNLISTEN
        PACTO_CONNECTED
        PACTO_FAILED
        PACTO_KINDS
        PACTO_REASON_ABORTED

    struct pacto_flow:
        uint64_t cgroup_id
        uint64_t net_cookie
        uint32_t netns
        uint32_t stamp     # listen, unlisten: inode; else milliseconds since boot, mod 2**32
        uint8_t address[16]
        uint16_t port      # host order
        uint8_t kind
        uint8_t family
        uint8_t reason
        uint8_t flags

    struct pacto_spill_key:
        uint64_t cgroup_id
        uint64_t net_cookie
        uint32_t netns
        uint8_t address[16]
        uint16_t port
        uint8_t kind
        uint8_t family

    struct pacto_spill:
        uint64_t count
        uint32_t stamp
        uint32_t reason

    struct pacto_lost:
        uint64_t lost[4]
        uint64_t spilled


cdef extern from "flow_reader.h":
    struct pacto_peer_key:
        uint64_t cgroup_id
        uint64_t net_cookie
        uint64_t address[2]  # 16 bytes, as in the record
        uint32_t netns
        uint16_t port
        uint8_t family

    struct pacto_entry:
        pacto_peer_key key
        uint32_t succeeded
        uint32_t failed
        uint32_t aborted
        uint32_t success_stamp
        uint32_t failure_stamp
        uint32_t reason

    struct pacto_origin:
        uint64_t cgroup_id
        uint64_t net_cookie
        uint64_t cut
        uint32_t netns
        uint32_t stamp

    struct pacto_buffer:
        pacto_entry *entries
        pacto_origin *origins
        pacto_flow *log
        unsigned int used
        unsigned int known
        unsigned int logged

    ctypedef void *pacto_consume
    ctypedef void *pacto_lookup
    ctypedef void *pacto_batch

    struct pacto_calls:
        pacto_consume consume
        pacto_lookup lookup
        pacto_batch lookup_and_delete_batch

    struct pacto_source:
        void *ring
        int ring_epoll
        int lost_fd
        int spilled_fd
        unsigned int cpus

    struct pacto_reader:
        pacto_lost kernel
        uint64_t overflowed[4]
        uint64_t cut
        uint64_t malformed
        uint64_t records
        uint64_t passes
        uint64_t passed_ms
        int error

    pacto_reader *pacto_reader_new() noexcept nogil
    void pacto_reader_free(pacto_reader *reader) noexcept nogil
    int pacto_reader_feed(void *reader, void *record, size_t size) noexcept nogil
    void pacto_reader_feed_spilled(pacto_reader *reader, const pacto_spill_key *key,
                                   const pacto_spill *value) noexcept nogil
    int pacto_reader_connect(pacto_reader *reader, const pacto_calls *calls,
                             const pacto_source *source) noexcept nogil
    int pacto_reader_pass(pacto_reader *reader) noexcept nogil
    int pacto_reader_run(pacto_reader *reader, int timeout_ms) noexcept nogil
    void pacto_reader_stop(pacto_reader *reader) noexcept nogil
    pacto_buffer *pacto_reader_take(pacto_reader *reader) noexcept nogil
