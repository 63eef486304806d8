# SPDX-License-Identifier: MIT
"""Every interleaving of sockets that open, close and open again with the steps of one resync.

A model of the kernel says what is true, puts an event into the ring at each change, and is read at
the step `scan`. Whatever the order, once all events are applied the view must equal the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from pacto_agent.attribution import Attribution
from pacto_agent.flows import ListenEvent, Sockets
from pacto_agent.podmap import PodMap
from pacto_agent.view import View
from tests.unit.agent.made import (
    CGROUP,
    NOW,
    OUTSIDE,
    listen,
    listening,
    mapped_view,
    one_pod_map,
    pod_of,
    ports,
    unlisten,
)

STEPS = ("begin", "map", "scan", "end")
FOREIGN = 3


class Kernel:
    """Sockets 1 and 2 of the pod and 3 of somebody else in its namespace; each listen() has a new port.

    `unbound`: those of the pod leave the port to the kernel, which chooses it after the event.
    """

    def __init__(self, *, unbound: bool = False) -> None:
        self.ring: list[ListenEvent] = []
        self.open: dict[int, int] = {}
        self._port = 1000
        self._unbound = unbound

    def toggle(self, inode: int) -> None:
        """Listen, or stop."""
        cgroup = OUTSIDE if inode == FOREIGN else CGROUP
        if inode in self.open:
            del self.open[inode]
            self.ring.append(unlisten(inode, cgroup=cgroup))
        else:
            self._port += 1
            self.open[inode] = self._port
            told = 0 if self._unbound and inode != FOREIGN else self._port
            self.ring.append(listen(inode, told, cgroup=cgroup))

    def scan(self) -> Sockets:
        """The namespace's own list, which does not say who made a socket."""
        return listening(*self.open.items())

    @property
    def own_ports(self) -> list[int]:
        """What the view must come to."""
        return sorted(port for inode, port in self.open.items() if inode != FOREIGN)


class Agent:
    """The agent's steps, in the order of Agent._resync."""

    def __init__(self, kernel: Kernel, view: View) -> None:
        self._kernel = kernel
        self.view = view
        self._attribution = Attribution(view)
        self._read = Sockets()

    def collect(self) -> None:
        """Apply what is in the ring, and read again whose port no event knew."""
        events, self._kernel.ring = self._kernel.ring, []
        self._attribution.listens(events)
        if self.view.rescans:
            self.view.rescan(dict.fromkeys(list(self.view.rescans), self._kernel.scan()))

    def step(self, name: str) -> None:
        """One step of a resync."""
        match name:
            case "begin":
                self.collect()
                self.view.begin_resync()
                self._attribution.begin_map()
            case "map":
                self.view.set_map(one_pod_map())
            case "scan":
                self._read = self._kernel.scan()
            case "end":
                self.collect()
                self.view.end_resync({"a": self._read}, NOW)
                self._attribution.retry(NOW)
            case _:
                raise ValueError(name)


def merges(operations: int, steps: int) -> Iterator[tuple[bool, ...]]:
    """Every order of so many operations and steps: True where an operation is next."""
    for places in combinations(range(operations + steps), operations):
        yield tuple(place in places for place in range(operations + steps))


def run(
    order: tuple[bool, ...], sockets: tuple[int, ...], view: View, *, collecting: bool, unbound: bool = False
) -> Kernel:
    """One interleaving; `collecting`: the agent also reads the ring after each operation."""
    kernel, upcoming, steps = Kernel(unbound=unbound), iter(sockets), iter(STEPS)
    agent = Agent(kernel, view)
    for is_operation in order:
        if is_operation:
            kernel.toggle(next(upcoming))
            if collecting:
                agent.collect()
        else:
            agent.step(next(steps))
    agent.collect()
    return kernel


@pytest.mark.parametrize("collecting", [False, True], ids=["drained by the resync", "read all the time"])
@pytest.mark.parametrize("known", [False, True], ids=["new pod", "known pod"])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_view_equals_the_truth(length: int, known: bool, collecting: bool) -> None:
    for sockets in product((1, 2, FOREIGN), repeat=length):
        for order in merges(length, len(STEPS)):
            view = mapped_view() if known else mapped_view(PodMap())
            kernel = run(order, sockets, view, collecting=collecting)
            assert ports(view) == kernel.own_ports, (order, sockets)


@pytest.mark.parametrize("collecting", [False, True], ids=["drained by the resync", "read all the time"])
@pytest.mark.parametrize("known", [False, True], ids=["new pod", "known pod"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_ports_that_the_kernel_chooses_are_the_truth_too(length: int, known: bool, collecting: bool) -> None:
    for sockets in product((1, 2, FOREIGN), repeat=length):
        for order in merges(length, len(STEPS)):
            view = mapped_view() if known else mapped_view(PodMap())
            kernel = run(order, sockets, view, collecting=collecting, unbound=True)
            assert ports(view) == kernel.own_ports, (order, sockets)


@pytest.mark.parametrize("collecting", [False, True])
def test_one_socket_that_never_rests(collecting: bool) -> None:
    for length in range(5, 9):
        for order in merges(length, len(STEPS)):
            view = mapped_view()
            kernel = run(order, (1,) * length, view, collecting=collecting)
            assert ports(view) == kernel.own_ports, order


def test_a_lost_event_is_healed_by_the_next_baseline_and_marked_until_then() -> None:
    for lost in range(4):
        for order in merges(4, len(STEPS)):
            kernel, view, steps = Kernel(), mapped_view(), iter(STEPS)
            agent, operation = Agent(kernel, view), iter(range(4))
            for is_operation in order:
                if is_operation:
                    kernel.toggle(1)
                    if next(operation) == lost:
                        kernel.ring.pop()
                        view.note_loss()
                else:
                    agent.step(next(steps))
            agent.collect()
            right = ports(view) == kernel.own_ports
            assert right or not pod_of(view).complete, (order, lost)
            for step in STEPS:
                agent.step(step)
            assert ports(view) == kernel.own_ports
            assert pod_of(view).complete
