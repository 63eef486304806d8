# SPDX-License-Identifier: MIT
"""The state of collection: Running, Degraded or Failed, and why. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import Final

from kubectl_pacto.model.node import Collection, CollectionReason

MINUTE: Final = 60.0


class PerMinute:
    """How far a count went in the last minute; told at most once per publish interval, so bounded."""

    def __init__(self) -> None:
        self._told: deque[tuple[float, int]] = deque()

    def add(self, count: int, now: float) -> int:
        """`count` at `now`, in seconds of a clock that never jumps; the rate, rounded up."""
        self._told.append((now, count))
        while len(self._told) > 1 and now - self._told[1][0] >= MINUTE:
            self._told.popleft()
        since, before = self._told[0]
        return ceil((count - before) * MINUTE / max(MINUTE, now - since))


@dataclass(slots=True)
class Health:
    """What happened so far; times in POSIX seconds, counters since the agent started."""

    started_at: float
    failure: CollectionReason = CollectionReason.NONE  # of the kernel part: it stays
    failure_message: str = ""
    resync_problem: str = ""  # of the last resync, empty while it worked
    last_resync: float | None = None
    connections_since: float | None = None
    dropped_events: int = 0
    dropped_since_resync: bool = False
    unattributed_events: int = 0
    foreign_events: int = 0
    api_requests_per_minute: int | None = None
    pods_found: int = 0
    pod_limit_exceeded: bool = False

    def fail(self, reason: CollectionReason, message: str) -> None:
        """The kernel part does not work; the first failure is the one to act on."""
        if self.failure is CollectionReason.NONE:
            self.failure, self.failure_message = reason, " ".join(message.split())

    def lose(self, events: int, connections: int, now: float) -> None:
        """`events` were lost by now, `connections` of them connection events."""
        self.dropped_events += events
        self.dropped_since_resync = True
        if connections:
            self.connections_since = now

    def resynced(self, at: float, *, dropped_meanwhile: bool) -> None:
        """A baseline that began at `at` was applied."""
        self.last_resync = at
        self.resync_problem = ""
        self.dropped_since_resync = dropped_meanwhile

    def collection(self) -> Collection:
        """As published: the worst reason, with words for people."""
        reason, message = self._worst()
        return Collection(
            reason=reason,
            message=message,
            started_at=self.started_at,
            last_resync=self.last_resync,
            connections_since=self.connections_since,
            dropped_events=self.dropped_events,
            unattributed_events=self.unattributed_events,
            foreign_events=self.foreign_events,
            api_requests_per_minute=self.api_requests_per_minute,
            state=reason.state,
        )

    def _worst(self) -> tuple[CollectionReason, str]:
        if self.failure is not CollectionReason.NONE:
            return self.failure, self.failure_message
        if self.resync_problem:
            return CollectionReason.RESYNC_FAILED, self.resync_problem
        if self.dropped_since_resync:
            total = f"{self.dropped_events} events dropped since the agent started"
            return CollectionReason.EVENTS_DROPPED, f"{total}; the next resync reads the listeners again"
        if self.pod_limit_exceeded:
            return (
                CollectionReason.POD_LIMIT_EXCEEDED,
                f"{self.pods_found} pods on this node, more than are kept",
            )
        return CollectionReason.NONE, ""
