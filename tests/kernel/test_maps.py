# SPDX-License-Identifier: MIT
"""What the kernel charges for the maps: bounded, known, and the same whatever happens."""

from __future__ import annotations

import os
from pathlib import Path

from kubectl_pacto.model import bounds
from pacto_agent import limits
from pacto_agent.tracer import open_tracer
from tests.support.hosts import Host, Pod


def charged() -> int:
    """Bytes of all maps that this process holds, by the kernel's own count."""
    total = 0
    for info in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = dict(line.split(":\t", 1) for line in info.read_text().splitlines() if ":\t" in line)
        except FileNotFoundError:  # the directory's own descriptor
            continue
        if "map_id" in lines:
            total += int(lines["memlock"])
    return total


def least() -> int:
    """The spill map and the ring. From 5.11 until 6.4 it is by keys and values: a ring has none."""
    estimates = (5, 11) <= limits.read_facts().kernel < (6, 4)
    return bounds.SPILL_ENTRIES * 56 + (0 if estimates else bounds.RING_BYTES)


def pinned() -> list[Path]:
    """Objects in the kernel's BPF file system, none where it is not mounted."""
    return [path for path in Path("/sys/fs/bpf").rglob("*") if "pacto" in path.name or "flows" in path.name]


def test_the_maps_fit_what_an_old_kernel_is_asked_for_and_never_grow(host: Host, pod: Pod) -> None:
    before = charged()
    tracer = open_tracer()
    try:
        fresh = charged() - before
        assert least() <= fresh <= limits.MEMLOCK_BYTES * max(1, (os.cpu_count() or 1) // 64)
        pod.run("[connect('127.0.0.1', 1 + number) for number in range(6000)]")
        assert charged() - before == fresh
        assert pinned() == []
    finally:
        tracer.close()
    assert charged() == before
