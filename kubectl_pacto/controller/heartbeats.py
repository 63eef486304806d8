# SPDX-License-Identifier: MIT
"""The nodes' heartbeats by the operator's own clock: how old, seen to move, and the nodes' offsets.

A sink of the Leases' reflector. A time that a node wrote is only ever compared with an earlier one of
the same node; the offset is the least difference seen, because a late event makes it larger, never
smaller.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_pacto.kube.reflector import Broken, Key
from kubectl_pacto.model.kube import Lease
from kubectl_pacto.model.snapshot import Heartbeat

SAMPLES: Final = 5


@dataclass(slots=True)
class _Beat:
    stamp: float
    seen_at: float
    renewed: bool = False
    samples: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    @property
    def offset(self) -> float:
        return min(self.samples, default=0.0)

    def told(self) -> Heartbeat:
        """As checks read it."""
        return Heartbeat(self.seen_at, self.renewed, self.offset)


class Heartbeats:
    """What this process has seen of each node's Lease, or where there is none of its publishing."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._beats: dict[str, _Beat] = {}
        self._leases: dict[str, Lease] = {}

    def replace(self, items: Mapping[Key, Lease | Broken]) -> None:
        """After a list: a renewal that happened meanwhile counts from when it was made, not from now."""
        with self._lock:
            self._leases = {name: lease for (_, name), lease in items.items() if isinstance(lease, Lease)}
            for name, lease in self._leases.items():
                if lease.renewed is not None:
                    self._see(name, lease.renewed, is_live=False)
            for name in self._beats.keys() - self._leases.keys():
                del self._beats[name]

    def put(self, key: Key, item: Lease | Broken) -> None:
        """A Lease that was created or renewed just now."""
        with self._lock:
            if not isinstance(item, Lease):
                self._leases.pop(key[1], None)
                return
            self._leases[key[1]] = item
            if item.renewed is not None:
                self._see(key[1], item.renewed, is_live=True)

    def drop(self, key: Key) -> None:
        """A Lease that is gone: its node is as one never seen."""
        with self._lock:
            self._leases.pop(key[1], None)
            self._beats.pop(key[1], None)

    def published(self, name: str, stamp: float | None) -> Heartbeat | None:
        """When a node object was last written: its heartbeat, returned, where the node has no Lease."""
        with self._lock:
            lease = self._leases.get(name)
            if stamp is None or (lease is not None and lease.renewed is not None):
                return None
            self._see(name, stamp, is_live=False)
            return self._beats[name].told()

    def _see(self, name: str, stamp: float, *, is_live: bool) -> None:
        now, beat = self._clock(), self._beats.get(name)
        if beat is None:
            # the only comparison of two machines' clocks, and only until the next renewal
            self._beats[name] = _Beat(stamp, min(now, stamp))
            return
        if stamp == beat.stamp:
            return
        beat.stamp, beat.renewed = stamp, True
        if is_live:
            beat.samples.append(now - stamp)
        made = stamp + beat.offset if beat.samples and not is_live else now
        beat.seen_at = max(beat.seen_at, min(now, made))

    def lease(self, name: str) -> Lease | None:
        """A node's Lease."""
        return self._leases.get(name)

    def get(self, name: str) -> Heartbeat | None:
        """A node's heartbeat."""
        with self._lock:
            beat = self._beats.get(name)
            return None if beat is None else beat.told()

    def all(self) -> dict[str, Heartbeat]:
        """The heartbeats of all nodes, as of one moment."""
        with self._lock:
            return {name: beat.told() for name, beat in self._beats.items()}

    def __len__(self) -> int:
        return len(self._beats)

    def unproven(self) -> int:
        """How many nodes that seem alive have not been seen to renew their heartbeat yet."""
        with self._lock:
            now = self._clock()
            return sum(
                not beat.renewed and now - beat.seen_at <= (lease.duration or 0)
                for name, lease in self._leases.items()
                if (beat := self._beats.get(name)) is not None
            )

    def longest_interval(self) -> float:
        """How long a node that is alive may take to renew: half of the longest Lease."""
        with self._lock:
            return max((lease.duration or 0 for lease in self._leases.values()), default=0) / 2
