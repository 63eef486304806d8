# SPDX-License-Identifier: MIT
"""What a resync costs on a crowded node, by both mappers: `python -m tests.bench.resync` (root).

10,000 sleeping processes, and 200 network namespaces with listeners; the map and all baselines are
read by each mapper in turn. The ratio is that of the medians.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pacto_agent.mapper import Mapper, open_mapper
from pacto_agent.podmap import PodMap
from pacto_agent.podscan import find_tree
from tests.support.hosts import Host

PROCESSES: Final = int(os.environ.get("PACTO_BENCH_PROCESSES", "10000"))
NAMESPACES: Final = int(os.environ.get("PACTO_BENCH_NAMESPACES", "200"))
LISTENERS: Final = 5
ROUNDS: Final = 5


@contextmanager
def crowd(count: int) -> Iterator[None]:
    """That many processes that do nothing."""
    pids: list[int] = []
    try:
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            pids.append(pid)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


@contextmanager
def pods(count: int) -> Iterator[None]:
    """That many pods with listeners in namespaces of their own."""
    host = Host()
    try:
        for _ in range(count):
            one = host.pod()
            one.run(f"[listen('0.0.0.0') for _ in range({LISTENERS})] and None")
        yield
    finally:
        host.close()


def measure(mapper: Mapper) -> tuple[list[float], list[float], PodMap, int]:
    """Milliseconds of each map and of each set of baselines, and what was found."""
    maps, baselines, found, listeners = [], [], PodMap(), 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        found = mapper.pods(PodMap())
        maps.append((time.perf_counter() - began) * 1000)
        places = [place for place in found.places.values() if place.mapped]
        began = time.perf_counter()
        read = dict(mapper.baselines(places, lambda _uid: frozenset()))
        baselines.append((time.perf_counter() - began) * 1000)
        listeners = sum(len(sockets.listeners) for sockets in read.values() if sockets)
    return maps, baselines, found, listeners


def main() -> int:
    """Run and print; returns 0."""
    tree = find_tree("/sys/fs/cgroup")
    medians: dict[str, tuple[float, float]] = {}
    with crowd(PROCESSES), pods(NAMESPACES):  # in this order: a crowd inherits no pipes of pods
        for name in ("proc", "iter"):
            mapper = open_mapper(name, "/proc", tree)
            try:
                maps, baselines, found, listeners = measure(mapper)
            finally:
                mapper.close()
            medians[name] = statistics.median(maps), statistics.median(baselines)
            crowded = f"{found.processes} processes and {len(found.places)} pods"
            print(
                f"{name}: {crowded} mapped in {medians[name][0]:.1f} ms, "
                f"{listeners} listeners read in {medians[name][1]:.1f} ms"
            )
    for what, number in (("map", 0), ("baselines", 1)):
        print(f"{what}, proc / iter: {medians['proc'][number] / medians['iter'][number]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
