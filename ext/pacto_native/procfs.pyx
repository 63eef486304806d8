# SPDX-License-Identifier: MIT
# cython: language_level=3, boundscheck=True, wraparound=False, embedsignature=True
"""The processes in /proc: parent, start, network namespace, cgroups.

Used by the agent's podmap, in batches: the texts of ten thousand processes are never held at once.
The plain-Python twin is reference.ProcessScan.
"""

from libc.errno cimport errno
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t


cdef extern from "proc_scan.h":
    enum pacto_found:
        PACTO_FOUND_END
        PACTO_FOUND_PROCESS
        PACTO_FOUND_GONE
        PACTO_FOUND_DENIED
        PACTO_FOUND_MALFORMED

    struct pacto_process:
        int32_t pid
        int32_t parent
        uint64_t started
        uint32_t netns
        uint32_t cgroup_bytes
        uint8_t cgroup[8192]

    struct pacto_scan:
        pass

    pacto_scan *pacto_scan_open(const char *proc) noexcept nogil
    void pacto_scan_close(pacto_scan *scan) noexcept nogil
    pacto_found pacto_scan_next(pacto_scan *scan, pacto_process *process) noexcept nogil


cdef class ProcessScan:
    """One pass over /proc; `gone`, `denied` and `malformed` count what gave no row."""

    cdef pacto_scan *scan
    cdef readonly unsigned int gone
    cdef readonly unsigned int denied
    cdef readonly unsigned int malformed

    def __cinit__(self, proc):
        """Open the directory `proc` (a path); raises OSError."""
        cdef bytes path = proc.encode() if isinstance(proc, str) else proc
        if 0 in path:
            raise ValueError("embedded null byte")
        cdef const char *text = path
        self.scan = pacto_scan_open(text)
        if self.scan == NULL:
            raise OSError(errno, "cannot list processes", proc)

    def __dealloc__(self):
        self.close()

    def close(self):
        """Release the directory; may be called twice."""
        pacto_scan_close(self.scan)
        self.scan = NULL

    def batch(self, int limit):
        """The next rows, `limit` at most; an empty list at the end."""
        cdef pacto_process one
        cdef pacto_found found
        rows = []
        while self.scan != NULL and len(rows) < limit:
            with nogil:
                found = pacto_scan_next(self.scan, &one)
            if found == PACTO_FOUND_END:
                break
            if found == PACTO_FOUND_PROCESS:
                rows.append((one.pid, one.parent, one.started, one.netns, one.cgroup[:one.cgroup_bytes]))
            else:
                self.count(found)
        return rows

    cdef void count(self, pacto_found found) noexcept:
        if found == PACTO_FOUND_GONE:
            self.gone += 1
        elif found == PACTO_FOUND_DENIED:
            self.denied += 1
        else:
            self.malformed += 1
