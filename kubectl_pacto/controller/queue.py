# SPDX-License-Identifier: MIT
"""Keys that wait for work: each at most once, and never by two workers at a time.

A key that is added while it is worked on comes again once that is done. A failure comes back after a
pause of its own that doubles; everything is told by one monotonic clock.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 300.0
LEAST_GAP: Final = 0.2


class Taken(NamedTuple, Generic[K]):
    """A key to work on, since when it was due, and when it was last added; -inf where it came by itself."""

    key: K
    due: float
    asked: float = float("-inf")


class WorkQueue(Generic[K]):
    """For one process; `gap` is the least time between two starts of work on one key."""

    def __init__(self, *, gap: float = LEAST_GAP, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap = gap
        self._clock = clock
        self._changed = threading.Condition()
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._running: dict[K, float] = {}
        self._started: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._again: dict[K, float] = {}
        self._asked: dict[K, float] = {}
        self._count = 0
        self._closed = False

    def add(self, key: K, after: float = 0.0) -> None:
        """Have a key worked on, after so many seconds at the latest; an earlier due time stands."""
        with self._changed:
            self._asked[key] = self._clock()
            when = max(self._clock() + after, self._started.get(key, -self._gap) + self._gap)
            waiting = self._again if key in self._running else self._due
            if when >= waiting.get(key, when + 1):
                return
            waiting[key] = when
            if waiting is self._due:
                self._push(key, when)

    def _push(self, key: K, when: float) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, key))
        self._changed.notify()

    def take(self, timeout: float) -> Taken[K] | None:
        """The key that has been due the longest; None after `timeout` seconds or once closed."""
        deadline = self._clock() + timeout
        with self._changed:
            while not self._closed:
                now = self._clock()
                while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
                    heapq.heappop(self._heap)  # superseded, or forgotten
                if self._heap and self._heap[0][0] <= now:
                    when, _, key = heapq.heappop(self._heap)
                    del self._due[key]
                    self._running[key] = self._started[key] = now
                    return Taken(key, when, self._asked.pop(key, float("-inf")))
                if now >= deadline:
                    return None
                wake = min(deadline, self._heap[0][0]) if self._heap else deadline
                self._changed.wait(wake - now)
        return None

    def done(self, key: K, again: float | None = None) -> None:
        """End the work on a key that went well; have it come again after so many seconds."""
        self._finish(key, again, failures=0)

    def failed(self, key: K) -> float:
        """End the work on a key that went wrong; it comes again after the pause that is returned."""
        with self._changed:
            failures = self._failures.get(key, 0)
        pause = min(FIRST_PAUSE * 2.0 ** min(failures, 30), LONGEST_PAUSE)
        self._finish(key, pause, failures=failures + 1)
        return pause

    def _finish(self, key: K, again: float | None, failures: int) -> None:
        with self._changed:
            self._running.pop(key, None)
            self._failures[key] = failures
            added = self._again.pop(key, None)
            later = None if again is None else self._clock() + again
            times = [when for when in (added, later) if when is not None]
            if times and (when := min(times)) < self._due.get(key, float("inf")):
                self._due[key] = when
                self._push(key, when)

    def forget(self, key: K) -> None:
        """A key that is no more: nothing of it is kept but what was added while it was worked on."""
        with self._changed:
            for kept in (self._due, self._started, self._failures, self._running):
                kept.pop(key, None)
            added = self._again.pop(key, None)
            if added is None:
                self._asked.pop(key, None)
            else:
                self._due[key] = added
                self._push(key, added)

    def depth(self) -> int:
        """How many keys are due now and wait for a worker."""
        with self._changed:
            now = self._clock()
            return sum(when <= now for when in self._due.values())

    def longest_running(self) -> float:
        """For how many seconds the oldest work has been going on."""
        with self._changed:
            return max((self._clock() - start for start in self._running.values()), default=0.0)

    def sizes(self) -> tuple[int, ...]:
        """How many entries each table holds: for the test that nothing grows."""
        with self._changed:
            tables = (self._due, self._running, self._started, self._failures, self._again, self._asked)
            return (*(len(table) for table in tables), len(self._heap))

    def close(self) -> None:
        """Let no worker wait any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
