# SPDX-License-Identifier: MIT
"""Every bound of the specification and of the decisions, and where the agents are, named once."""

from __future__ import annotations

from typing import Final

AGENT_NAMESPACE: Final = "pacto-node-agent"

PODS_PER_NODE: Final = 256
LISTENERS_PER_POD: Final = 64
PEERS_PER_POD: Final = 128
PEERS_PER_NODE: Final = 4096
PEER_RETENTION_SECONDS: Final = 600.0
OBJECT_BYTES: Final = 1 << 20

RING_BYTES: Final = 256 << 10
WAKE_BYTES: Final = 64 << 10
SPILL_ENTRIES: Final = 4096

PUBLISH_INTERVAL_SECONDS: Final = 30.0
RESYNC_INTERVAL_SECONDS: Final = 60.0
# of both intervals, wherever they are given; an agent that is tried by hand takes a shorter one
SHORTEST_INTERVAL_SECONDS: Final = 1.0
SHORTEST_TRIED_INTERVAL_SECONDS: Final = 0.2
LONGEST_INTERVAL_SECONDS: Final = 24 * 3600.0
# The Lease says this many publish intervals, and the staleness bound is the same number by default.
STALENESS_INTERVALS: Final = 3
STABILIZATION_SECONDS: Final = 120.0
READER_SILENCE_SECONDS: Final = 5.0
CLOCK_SKEW_WARNING_SECONDS: Final = 30.0
WATCH_SILENCE_SECONDS: Final = 120.0
CHECK_INTERVAL_SECONDS: Final = 300
