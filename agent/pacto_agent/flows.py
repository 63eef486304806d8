# SPDX-License-Identifier: MIT
"""What an event says, in plain terms: the rows of the native reader with their times and texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from kubectl_pacto.model.node import FailureReason
from pacto_native import rows

REASONS: Final = (
    FailureReason.NONE,
    FailureReason.REFUSED,
    FailureReason.TIMEOUT,
    FailureReason.UNREACHABLE,
    FailureReason.RESET,
    FailureReason.OTHER,
)
STAMP_MODULUS: Final = 1 << 32

# states of a socket, as the kernel numbers them
ESTABLISHED: Final = 1
SYN_SENT: Final = 2
LISTENING: Final = 10


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    """One listening socket; `v6only` is None where unknown or IPv4."""

    inode: int
    address: str
    port: int
    v6only: bool | None = None
    cgroup_id: int = 0  # that created it, 0 where a baseline cannot tell


@dataclass(frozen=True, slots=True)
class Connection:
    """An outbound connection that the namespace holds; `pending`: its SYN went out again, unanswered."""

    address: str
    port: int
    pending: bool = False
    cgroup_id: int = 0  # that created it, 0 where a baseline cannot tell


class HeldSocket(NamedTuple):
    """One TCP socket as either mapper reads it; addresses of 4 or 16 bytes in network order."""

    state: int
    inode: int
    local: bytes
    local_port: int
    remote: bytes
    remote_port: int
    retransmits: int
    v6only: bool | None = None  # None: IPv4, or the mapper cannot tell
    cgroup_id: int = 0  # that created it, 0 where the mapper cannot tell


@dataclass(frozen=True, slots=True)
class Sockets:
    """What was read of one namespace."""

    listeners: tuple[ListeningSocket, ...] = ()
    outbound: tuple[Connection, ...] = ()
    malformed: int = 0


class Sorting:
    """Sorts the sockets of one namespace as they are read, and holds what will be told of them alone."""

    def __init__(self) -> None:
        self._listeners: list[ListeningSocket] = []
        self._others: list[tuple[int, Connection]] = []  # with the local port, if a listener may have it
        self._cgroups: dict[int, int] = {}  # one number for all sockets of a cgroup: each read makes its own
        self.malformed = 0

    def add(self, one: HeldSocket) -> None:
        """One more socket."""
        cgroup_id = self._cgroups.setdefault(one.cgroup_id, one.cgroup_id)
        if one.state == LISTENING:
            if one.inode and one.local_port:
                self._listeners.append(
                    ListeningSocket(one.inode, address_text(one.local), one.local_port, one.v6only, cgroup_id)
                )
        elif one.state == ESTABLISHED or (one.state == SYN_SENT and one.retransmits):
            pending = one.state == SYN_SENT
            other = Connection(address_text(one.remote), one.remote_port, pending, cgroup_id)
            self._others.append((0 if pending else one.local_port, other))

    def sockets(self) -> Sockets:
        """Listeners, and what is outbound: its local port is no listener's of the namespace."""
        served = {socket.port for socket in self._listeners}
        outbound = tuple(other for port, other in self._others if port not in served)
        return Sockets(tuple(self._listeners), outbound, self.malformed)


@dataclass(frozen=True, slots=True)
class ListenEvent:
    """A socket began to listen, or stopped. Port 0: not chosen yet, a rescan has it."""

    cgroup_id: int
    netns: int
    began: bool
    socket: ListeningSocket
    cookie: int = 0  # of the namespace, 0 before Linux 6.1


@dataclass(frozen=True, slots=True)
class ConnectionSums:
    """Outbound connections of one identity to one peer, summed over a moment; POSIX seconds."""

    cgroup_id: int
    netns: int
    address: str
    port: int
    succeeded: int
    failed: int
    aborted: int
    last_success: float | None
    last_failure: float | None
    reason: FailureReason
    cookie: int = 0  # of the namespace, 0 before Linux 6.1

    @property
    def last(self) -> float | None:
        """When a connection last succeeded or failed; None: all were aborted."""
        return max((at for at in (self.last_success, self.last_failure) if at is not None), default=None)

    @property
    def events(self) -> int:
        """How many connections these are."""
        return self.succeeded + self.failed + self.aborted


@dataclass(frozen=True, slots=True)
class Cut:
    """Connections of one identity past its share of what is kept in a moment; `last`: POSIX seconds."""

    cgroup_id: int
    netns: int
    events: int
    last: float | None
    cookie: int = 0  # of the namespace, 0 before Linux 6.1


@dataclass(frozen=True, slots=True)
class ClockPair:
    """The kernel's clock and the wall clock at one moment: turns stamps of the one into times."""

    mono_ms: int
    wall: float

    def wall_of(self, stamp: int) -> float:
        """POSIX seconds of a stamp (milliseconds since boot, mod 2**32) of the last 24 days."""
        ago = (self.mono_ms - stamp) % STAMP_MODULUS
        if ago >= STAMP_MODULUS // 2:  # a hair in the future: taken after this pair
            ago -= STAMP_MODULUS
        return self.wall - ago / 1000


@lru_cache(maxsize=4096)
def address_text(address: bytes) -> str:
    """The usual text of 4 or 16 bytes in network order."""
    return str(IPv4Address(address) if len(address) == 4 else IPv6Address(address))


def listen_event(row: rows.ListenRow) -> ListenEvent:
    """One row of the reader's log."""
    kind, cgroup_id, cookie, netns, inode, family, address, port, flags = row
    v6only = bool(flags & rows.V6ONLY) if family == 6 else None
    socket = ListeningSocket(inode, address_text(address), port, v6only, cgroup_id)
    return ListenEvent(cgroup_id, netns, kind == rows.LISTEN, socket, cookie)


def connection_sums(row: rows.ConnectionRow, clocks: ClockPair) -> ConnectionSums:
    """One row of the reader's table."""
    cgroup_id, cookie, netns, _, address, port, succeeded, failed, aborted, success, failure, reason = row
    return ConnectionSums(
        cgroup_id=cgroup_id,
        netns=netns,
        address=address_text(address),
        port=port,
        succeeded=succeeded,
        failed=failed,
        aborted=aborted,
        last_success=clocks.wall_of(success) if succeeded else None,
        last_failure=clocks.wall_of(failure) if failed else None,
        reason=REASONS[reason] if failed and reason < len(REASONS) else FailureReason.NONE,
        cookie=cookie,
    )


def cut_of(row: rows.CutRow, clocks: ClockPair) -> Cut:
    """One row of the reader's cuts."""
    cgroup_id, cookie, netns, events, stamp = row
    return Cut(cgroup_id, netns, events, clocks.wall_of(stamp), cookie)
