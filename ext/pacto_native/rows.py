# SPDX-License-Identifier: MIT
"""The shapes of rows that native parts and their plain-Python twins both return."""

from __future__ import annotations

from typing import Final, TypeAlias

LISTEN: Final = 0
UNLISTEN: Final = 1
CONNECTED: Final = 2
FAILED: Final = 3
KINDS: Final = 4

REASON_ABORTED: Final = 6
REASONS: Final = ("", "refused", "timeout", "unreachable", "reset", "other", "aborted")

V6ONLY: Final = 1
MPTCP: Final = 2

SPILL_HEAD: Final = 5  # the kind of an origin's head in the spill map

TABLE_ENTRIES: Final = 8192
ORIGINS: Final = 2048
ORIGIN_PEERS: Final = 128
ORIGIN_SPILLED: Final = 384
LOG_ENTRIES: Final = 8192

# kind, cgroup id, net cookie, netns inode, socket inode, family 4|6, address, port, flags
ListenRow: TypeAlias = tuple[int, int, int, int, int, int, bytes, int, int]

# cgroup id, net cookie, netns inode, family, address, port, succeeded, failed, aborted,
# success stamp, failure stamp (ms since boot mod 2**32), reason
ConnectionRow: TypeAlias = tuple[int, int, int, int, bytes, int, int, int, int, int, int, int]

# cgroup id, net cookie, netns inode, events cut, stamp of the last one (ms since boot mod 2**32)
CutRow: TypeAlias = tuple[int, int, int, int, int]

# state (1 established, 2 SYN sent, 10 listening), family, local address, local port,
# remote address, remote port, retransmits, inode
SocketRow: TypeAlias = tuple[int, int, bytes, int, bytes, int, int, int]

# pid, parent's pid, start time in clock ticks since boot, netns inode (0 unreadable), cgroup text
ProcessRow: TypeAlias = tuple[int, int, int, int, bytes]
