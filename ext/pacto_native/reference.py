# SPDX-License-Identifier: MIT
"""The native readers in plain Python: the oracle of tests/native, never imported by the product.

Each name has the interface of its compiled twin and must give the same answer on any bytes. Where
the two differ, one of them is wrong: this file is written for reading, not for speed.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pacto_native.rows import (
    CONNECTED,
    FAILED,
    KINDS,
    LISTEN,
    LOG_ENTRIES,
    ORIGIN_PEERS,
    ORIGIN_SPILLED,
    ORIGINS,
    REASON_ABORTED,
    REASONS,
    SPILL_HEAD,
    TABLE_ENTRIES,
    UNLISTEN,
    ConnectionRow,
    CutRow,
    ListenRow,
    ProcessRow,
    SocketRow,
)

# bpf/flow.h in the notation of struct: "=" has no padding, so a change there shows in the size
FLOW: Final = struct.Struct("=QQII16sHBBBBH")
SPILL_KEY: Final = struct.Struct("=QQI16sHBB")
SPILL: Final = struct.Struct("=QII")

U64: Final = (1 << 64) - 1
U32: Final = (1 << 32) - 1  # where a count of one moment stops

ESTABLISHED: Final = 1
SYN_SENT: Final = 2
LISTENING: Final = 10

CGROUP_BYTES: Final = 8192
STAT_BYTES: Final = 2048


@dataclass(slots=True)
class Sums:
    """What one peer's connections came to."""

    succeeded: int = 0
    failed: int = 0
    aborted: int = 0
    success_stamp: int = 0
    failure_stamp: int = 0
    reason: int = 0


@dataclass(slots=True)
class Origin:
    """Who made sockets: how many peers it has in the table, and what was cut past its share."""

    peers: int = 0
    cut: int = 0
    stamp: int = 0


def is_later(stamp: int, than: int) -> bool:
    """Whether a stamp comes after another, both milliseconds mod 2**32."""
    return 0 < (stamp - than) % (1 << 32) < 1 << 31


def is_ours(kind: int, family: int, reason: int) -> bool:
    """Whether the program in bpf/flow.bpf.c could have written this."""
    if kind >= KINDS or family not in (4, 6):
        return False
    return 0 < reason < len(REASONS) if kind == FAILED else reason == 0


def address_of(address: bytes, family: int) -> bytes:
    """The bytes of the address that its family uses."""
    return address[:4] if family == 4 else address


class FlowReader:
    """Twin of ring.FlowReader, as far as it is fed by hand: no ring, no maps, no thread."""

    def __init__(self) -> None:
        self.malformed = 0
        self.records = 0
        self.cut = 0
        self._overflowed = [0] * KINDS
        self._sums: dict[tuple[int, int, int, int, bytes, int, int], Sums] = {}
        self._log: list[ListenRow] = []
        self._origins: dict[tuple[int, int, int], Origin] = {}
        self._taken: tuple[list[ListenRow], list[ConnectionRow], list[CutRow]] = ([], [], [])

    @property
    def lost(self) -> tuple[int, int, int, int]:
        """Events per kind that found no room in the buffer."""
        listen, unlisten, connected, failed = self._overflowed
        return listen, unlisten, connected, failed

    def feed(self, record: bytes) -> None:
        """One record's bytes; what is none of ours is counted."""
        self.records += 1
        if len(record) != FLOW.size:
            self.malformed += 1
            return
        cgroup, cookie, netns, stamp, address, port, kind, family, reason, flags, _ = FLOW.unpack(record)
        if not is_ours(kind, family, reason):
            self.malformed += 1
        elif kind in (LISTEN, UNLISTEN):
            address = address_of(address, family)
            self._note((kind, cgroup, cookie, netns, stamp, family, address, port, flags))
        else:
            self._add((cgroup, cookie, netns, family, address, port, 0), kind, reason, stamp, 1)

    def feed_spilled(self, key: bytes, value: bytes) -> None:
        """One entry of the spill map; raises ValueError when a size is wrong."""
        if len(key) != SPILL_KEY.size or len(value) != SPILL.size:
            raise ValueError(f"a spilled entry has {SPILL_KEY.size} and {SPILL.size} bytes")
        cgroup, cookie, netns, address, port, kind, family = SPILL_KEY.unpack(key)
        count, stamp, reason = SPILL.unpack(value)
        if kind == SPILL_HEAD:
            self._read_head((cgroup, cookie, netns), count, stamp)
            return
        outcome = CONNECTED if kind == CONNECTED else FAILED
        self._add((cgroup, cookie, netns, family, address, port, 0), outcome, reason, stamp, count)

    def take(self) -> tuple[int, int]:
        """Swap the buffers; returns (listen events, connection keys) now readable by slices."""
        rows = [
            (
                *key[:4],
                address_of(key[4], key[3]),
                key[5],
                sums.succeeded,
                sums.failed,
                sums.aborted,
                sums.success_stamp,
                sums.failure_stamp,
                sums.reason,
            )
            for key, sums in self._sums.items()
        ]
        cuts = [(*who, one.cut, one.stamp) for who, one in self._origins.items() if one.cut]
        self._taken = (self._log, rows, cuts)
        self._log, self._sums, self._origins = [], {}, {}
        return len(self._taken[0]), len(rows)

    def listens(self, start: int, stop: int) -> list[ListenRow]:
        """Listen and unlisten events of the taken buffer, in their order."""
        return self._taken[0][start:stop]

    def connections(self, start: int, stop: int) -> list[ConnectionRow]:
        """Sums of the taken buffer, in the order of each peer's first event."""
        return self._taken[1][start:stop]

    def cuts(self) -> list[CutRow]:
        """Who passed its share in the taken buffer."""
        return self._taken[2]

    def _note(self, row: ListenRow) -> None:
        if len(self._log) == LOG_ENTRIES:
            self._overflowed[row[0]] += 1
        else:
            self._log.append(row)

    def _add(
        self, key: tuple[int, int, int, int, bytes, int, int], kind: int, reason: int, stamp: int, count: int
    ) -> None:
        sums = self._sums.get(key)
        if sums is None:
            if not self._has_room(key[:3], kind, stamp, count):
                return
            sums = self._sums[key] = Sums()
        if kind == CONNECTED:
            if not sums.succeeded or is_later(stamp, sums.success_stamp):
                sums.success_stamp = stamp
            sums.succeeded = min(sums.succeeded + count, U32)
        elif reason == REASON_ABORTED:
            sums.aborted = min(sums.aborted + count, U32)
        else:
            if not sums.failed or not is_later(sums.failure_stamp, stamp):
                sums.failure_stamp, sums.reason = stamp, reason
            sums.failed = min(sums.failed + count, U32)

    def _has_room(self, who: tuple[int, int, int], kind: int, stamp: int, count: int) -> bool:
        origin = self._origin(who)
        if origin is not None and origin.peers == ORIGIN_PEERS:
            self._cut(origin, stamp, count)
        elif origin is None or len(self._sums) == TABLE_ENTRIES:
            self._overflowed[kind] = self._overflowed[kind] + count & U64
        else:
            origin.peers += 1
            return True
        return False

    def _origin(self, who: tuple[int, int, int]) -> Origin | None:
        if who not in self._origins and len(self._origins) == ORIGINS:
            return None
        return self._origins.setdefault(who, Origin())

    def _cut(self, origin: Origin, stamp: int, count: int) -> None:
        if not origin.cut or is_later(stamp, origin.stamp):
            origin.stamp = stamp
        origin.cut = origin.cut + count & U64
        self.cut = self.cut + count & U64

    def _read_head(self, who: tuple[int, int, int], count: int, stamp: int) -> None:
        if count <= ORIGIN_SPILLED:
            return
        if (origin := self._origin(who)) is not None:
            self._cut(origin, stamp, count - ORIGIN_SPILLED)
        else:
            self._overflowed[FAILED] = self._overflowed[FAILED] + count - ORIGIN_SPILLED & U64


_HEX8 = rb"[0-9A-Fa-f]{8}"
_ADDRESS = rb" *+((?:%b){4}|%b):([0-9A-Fa-f]{4})" % (_HEX8, _HEX8)
_FIELD = rb" *+[^ ]++"
_HEADER = re.compile(rb" *+s")
_HEAD = re.compile(rb"%b%b%b *+([0-9A-Fa-f]{2})" % (_FIELD, _ADDRESS, _ADDRESS), re.DOTALL)
_TAIL = re.compile(
    rb"%b%b *+(%b)%b%b *+([0-9]{1,19})(?![0-9])" % (_FIELD, _FIELD, _HEX8, _FIELD, _FIELD), re.DOTALL
)
_MAPPED = bytes(10) + b"\xff\xff"


def _address(text: bytes) -> bytes:
    """The kernel prints each 32-bit word of an address in the machine's byte order."""
    return b"".join(struct.pack("=I", int(text[i : i + 8], 16)) for i in range(0, len(text), 8))


def _unmapped(local: bytes, remote: bytes) -> tuple[bytes, bytes]:
    """IPv4-mapped IPv6 as IPv4; a listener's remote address is unspecified, whatever its own is."""
    if len(local) == 4 or not local.startswith(_MAPPED):
        return local, remote
    if remote.startswith(_MAPPED):
        return local[12:], remote[12:]
    return (local[12:], bytes(4)) if not any(remote) else (local, remote)


def _socket(line: bytes) -> SocketRow | bool:
    """The socket of one line; True: a header, or a state that nobody asks for; False: malformed."""
    if _HEADER.match(line):
        return True
    head = _HEAD.match(line)
    if head is None or len(head[1]) != len(head[3]):
        return False
    state = int(head[5], 16)
    if state not in (ESTABLISHED, SYN_SENT, LISTENING):
        return True
    tail = _TAIL.match(line, head.end())
    if tail is None:
        return False
    local, remote = _unmapped(_address(head[1]), _address(head[3]))
    family = 4 if len(local) == 4 else 6
    ports = int(head[2], 16), int(head[4], 16)
    return state, family, local, ports[0], remote, ports[1], int(tail[1], 16), int(tail[2])


def scan_sockets(text: bytes | bytearray | memoryview) -> tuple[list[SocketRow], int, int]:
    """Twin of procnet.scan_sockets: (rows, malformed lines, bytes used)."""
    whole, newline, _ = bytes(text).rpartition(b"\n")
    found = [_socket(line) for line in whole.split(b"\n")] if newline else []
    rows = [one for one in found if not isinstance(one, bool)]
    return rows, found.count(False), len(whole) + len(newline)


_NUMBER = re.compile(rb"0|[1-9][0-9]{0,17}")


def _number(text: bytes) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _stat(text: bytes) -> tuple[int, int] | None:
    """Parent and start time in /proc/PID/stat; the name in it may hold anything, brackets too."""
    _, bracket, rest = text.rpartition(b")")
    fields = re.findall(rb"[^ \n]+", rest.lstrip(b" ").partition(b"\n")[0])
    if not bracket or len(fields) < 20:  # the state is field 3, the start time field 22
        return None
    parent, started = _number(fields[1]), _number(fields[19])
    return None if parent is None or started is None or parent >= 1 << 31 else (parent, started)


def _read(directory: int, name: str, size: int) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    with open(fd, "rb") as file:
        return file.read(size)


class ProcessScan:
    """Twin of procfs.ProcessScan: one pass over /proc."""

    def __init__(self, proc: str | bytes) -> None:
        self.gone = 0
        self.denied = 0
        self.malformed = 0
        self._proc = os.fsencode(proc)
        self._names: Iterator[os.DirEntry[bytes]] | None = os.scandir(self._proc)

    def close(self) -> None:
        """End the pass; may be called twice."""
        self._names = None

    def batch(self, limit: int) -> list[ProcessRow]:
        """The next rows, `limit` at most; an empty list at the end."""
        rows: list[ProcessRow] = []
        while self._names is not None and len(rows) < limit:
            entry = next(self._names, None)
            if entry is None:
                break
            pid = _number(entry.name)
            if pid and pid < 1 << 31 and (row := self._counted(entry.path, pid)):
                rows.append(row)
        return rows

    def _counted(self, path: bytes, pid: int) -> ProcessRow | None:
        try:
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            self._failed(error)
            return None
        try:
            return self._process(directory, pid)
        except OSError as error:
            self._failed(error)
            return None
        finally:
            os.close(directory)

    def _failed(self, error: OSError) -> None:
        if isinstance(error, PermissionError):
            self.denied += 1
        else:
            self.gone += 1

    def _process(self, directory: int, pid: int) -> ProcessRow | None:
        text = _read(directory, "stat", STAT_BYTES)
        if not text:
            self.gone += 1
            return None
        stat = _stat(text)
        cgroup = _read(directory, "cgroup", CGROUP_BYTES) if stat else b""
        if stat is None or len(cgroup) == CGROUP_BYTES:
            self.malformed += 1
            return None
        link = os.readlink("ns/net", dir_fd=directory)
        match = re.fullmatch(r"net:\[([1-9][0-9]{0,9})\]", link)
        if match is None or int(match[1]) >= 1 << 32:
            self.malformed += 1
            return None
        return pid, *stat, int(match[1]), cgroup
