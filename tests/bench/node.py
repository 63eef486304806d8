# SPDX-License-Identifier: MIT
"""A node at its bounds for benchmarks: 256 pods and 4,096 peers, as records and as a map."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Final, cast

from kubectl_pacto.model import bounds
from pacto_agent.flows import LISTENING, HeldSocket
from pacto_agent.iterators import Iterators
from pacto_agent.mapper import IterMapper
from pacto_agent.podmap import IdentifiedProcess, Place, PodMap
from pacto_agent.podscan import find_tree
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


class FullIterators:
    """Stands where the kernel's iterators do, and always lists the same full node's sockets."""

    def __init__(self, listeners: int) -> None:
        """`listeners` of each pod."""
        self._listeners = listeners

    def processes(self) -> Iterator[IdentifiedProcess]:
        """None: FullMapper has the pods."""
        return iter(())

    def sockets(self) -> Iterator[tuple[int, HeldSocket]]:
        """Rows as the kernel's: each pod's listeners."""
        for pod in range(bounds.PODS_PER_NODE):
            for number in range(self._listeners):
                inode = (FIRST_NETNS + pod) * 64 + number
                local, remote = bytes(4), bytes([0, 0, 0, 0])
                cgroup = FIRST_CGROUP + pod
                yield (
                    FIRST_NETNS + pod,
                    HeldSocket(LISTENING, inode, local, 8000 + number, remote, 0, 0, None, cgroup),
                )

    def close(self) -> None:
        """Nothing is held."""


class FullMapper(IterMapper):
    """The agent's mapper, on a node whose pods and sockets are always the same."""

    def __init__(self, listeners: int) -> None:
        """`listeners` of each pod."""
        super().__init__(cast(Iterators, FullIterators(listeners)), "/proc", find_tree("/no-such-tree"))

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
