# SPDX-License-Identifier: MIT
"""A node at its bounds for benchmarks: 256 pods and 4,096 peers, as records and as a map."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kubectl_pacto.model import bounds
from pacto_agent.flows import ListeningSocket, Sockets
from pacto_agent.podmap import Place, PodMap
from pacto_native.rows import CONNECTED, FAILED

FLOW: Final = struct.Struct("=QQII16sHBBBBH")  # bpf/flow.h
FIRST_NETNS: Final = 4_026_532_000
FIRST_CGROUP: Final = 100_000
PEERS_PER_POD: Final = bounds.PEERS_PER_NODE // bounds.PODS_PER_NODE
REFUSED: Final = 1


def records(count: int, *, pods: int = bounds.PODS_PER_NODE, peers: int = PEERS_PER_POD) -> Iterator[bytes]:
    """So many connection records, spread over all pods and their peers; one in eight failed."""
    return (_record(number, number % pods, number // pods % peers) for number in range(count))


def _record(number: int, pod: int, peer: int) -> bytes:
    failed = number % 8 == 0
    address = bytes([10, 96, peer, pod]) + bytes(12)
    return FLOW.pack(
        FIRST_CGROUP + pod,
        0,
        FIRST_NETNS + pod,
        time.monotonic_ns() // 1_000_000 & 0xFFFFFFFF,
        address,
        5432,
        FAILED if failed else CONNECTED,
        4,
        REFUSED if failed else 0,
        0,
        0,
    )


class FullMapper:
    """Stands where the agent's mapper does, and always finds the same full node."""

    name = "bench"
    slow = False

    def __init__(self, listeners: int) -> None:
        """`listeners` of each pod."""
        self._listeners = listeners

    def pods(self, previous: PodMap) -> PodMap:
        """The map of 256 pods."""
        del previous
        places = [
            Place(f"{number:08x}-0000-4000-8000-000000000000", FIRST_NETNS + number, (number + 2,), number)
            for number in range(bounds.PODS_PER_NODE)
        ]
        return PodMap(
            places={place.uid: place for place in places},
            owners={place.netns: place.uid for place in places},
            cgroup_pods={FIRST_CGROUP + number: place.uid for number, place in enumerate(places)},
            namespaces=frozenset(place.netns for place in places),
            processes=4 * len(places),
        )

    def baselines(
        self, places: Iterable[Place], known: Callable[[str], frozenset[int]]
    ) -> Iterator[tuple[str, Sockets | None]]:
        """The listeners of each pod."""
        del known
        for place in places:
            listeners = tuple(
                ListeningSocket(place.netns * 64 + number, "0.0.0.0", 8000 + number)
                for number in range(self._listeners)
            )
            yield place.uid, Sockets(listeners)

    def close(self) -> None:
        """Nothing is held."""
