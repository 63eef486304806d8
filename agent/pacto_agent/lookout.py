# SPDX-License-Identifier: MIT
"""When a resync is due before its time, so that a new pod is complete within seconds. Pure.

Most pods announce themselves by an event that no map names. One that never opens a socket does not:
its cgroup is what shows first, and its processes come a moment later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pacto_agent.podmap import PodMap

GAP_SECONDS: Final = 2.0
LONGEST_GAP_SECONDS: Final = 64.0


class Lookout:
    """Compares the pods that exist with the map in force; patient with those that stay unmapped."""

    def __init__(self) -> None:
        self._missing: frozenset[str] = frozenset()
        self._gap = GAP_SECONDS

    def due(self, existing: Iterable[str], pods: PodMap, *, since_resync: float) -> bool:
        """Whether to resync now; `since_resync` is the time in seconds since the last one ended."""
        missing = frozenset(uid for uid in existing if not _is_settled(pods, uid))
        if missing != self._missing:
            self._missing, self._gap = missing, GAP_SECONDS
        if not missing or since_resync < self._gap:
            return False
        self._gap = min(2 * self._gap, LONGEST_GAP_SECONDS)
        return True


def _is_settled(pods: PodMap, uid: str) -> bool:
    place = pods.places.get(uid)
    return place is not None and bool(place.pids)
