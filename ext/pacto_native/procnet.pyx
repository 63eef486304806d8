# SPDX-License-Identifier: MIT
# cython: language_level=3, boundscheck=True, wraparound=False, embedsignature=True
"""Listening, established and connecting sockets in the text of /proc/net/tcp and tcp6.

Used by the agent's baseline. The text of a busy namespace is megabytes of lines that nobody asks
for: they are passed over without the GIL. The plain-Python twin is reference.scan_sockets.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "proc_net.h":
    enum pacto_line:
        PACTO_LINE_END
        PACTO_LINE_SOCKET
        PACTO_LINE_OTHER
        PACTO_LINE_MALFORMED

    struct pacto_cursor:
        const uint8_t *at
        size_t left

    struct pacto_socket:
        uint8_t local[16]
        uint8_t remote[16]
        uint64_t inode
        uint32_t retransmits
        uint16_t local_port
        uint16_t remote_port
        uint8_t state
        uint8_t family

    pacto_line pacto_next_line(pacto_cursor *cursor, pacto_socket *socket) noexcept nogil


cdef inline pacto_line next_socket(pacto_cursor *cursor, pacto_socket *socket) noexcept nogil:
    cdef pacto_line line = pacto_next_line(cursor, socket)
    while line == PACTO_LINE_OTHER:
        line = pacto_next_line(cursor, socket)
    return line


cdef tuple socket_row(pacto_socket *one):
    cdef int size = 4 if one.family == 4 else 16
    return (one.state, one.family, one.local[:size], one.local_port, one.remote[:size],
            one.remote_port, one.retransmits, one.inode)


def scan_sockets(const uint8_t[::1] text):
    """Sockets in the whole lines of `text`: (rows, malformed lines, bytes used).

    The bytes after the last newline are not used: the caller puts them before the next piece.
    """
    cdef pacto_cursor cursor
    cdef pacto_socket one
    cdef pacto_line line
    cdef size_t size = text.shape[0]
    rows = []
    malformed = 0
    if size == 0:  # an empty view has no first byte to point at
        return rows, malformed, 0
    cursor.at = &text[0]
    cursor.left = size
    while True:
        with nogil:
            line = next_socket(&cursor, &one)
        if line == PACTO_LINE_END:
            return rows, malformed, size - cursor.left
        if line == PACTO_LINE_SOCKET:
            rows.append(socket_row(&one))
        else:
            malformed += 1
