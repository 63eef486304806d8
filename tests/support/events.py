# SPDX-License-Identifier: MIT
"""What the real kernel program tells, gathered for a test: read on demand, one namespace at a time.

The tracer's reader is not started: events wait in the ring until asked for, so a test sees exactly
what its own steps caused. Other programs of this machine are traced too and are left out by namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kubectl_pacto.model.node import FailureReason
from pacto_agent.flows import ConnectionSums, Cut, ListenEvent
from pacto_agent.tracer import Tracer, open_tracer
from tests.support.hosts import Worker, until


@dataclass(slots=True)
class Outcome:
    """All connections to one peer."""

    succeeded: int = 0
    failed: int = 0
    aborted: int = 0
    reason: FailureReason = FailureReason.NONE


@dataclass(slots=True)
class Recorder:
    """Events since the tracer was opened."""

    tracer: Tracer
    all_listens: list[ListenEvent] = field(default_factory=list)
    all_sums: list[ConnectionSums] = field(default_factory=list)
    all_cuts: list[Cut] = field(default_factory=list)

    def gather(self) -> None:
        """Read all that waits in the ring."""
        self.tracer.drain()
        listens, slices, cuts = self.tracer.take()
        self.all_cuts += cuts
        self.all_listens += listens
        for sums in slices:
            self.all_sums += sums

    def listens(self, where: Worker | int) -> list[tuple[bool, int, str, int]]:
        """(began, inode, address, port) of each listen event in a namespace, in order."""
        return [
            (event.began, event.socket.inode, event.socket.address, event.socket.port)
            for event in self.listen_events(where)
        ]

    def listen_events(self, where: Worker | int) -> list[ListenEvent]:
        """Each listen event in a namespace, in order."""
        netns = where if isinstance(where, int) else where.netns
        self.gather()
        return [event for event in self.all_listens if event.netns == netns]

    def sums(self, where: Worker | int) -> list[ConnectionSums]:
        """All connection sums of a namespace."""
        netns = where if isinstance(where, int) else where.netns
        self.gather()
        return [one for one in self.all_sums if one.netns == netns]

    def outcomes(self, where: Worker | int) -> dict[tuple[str, int], Outcome]:
        """Per peer of a namespace, summed up."""
        found: dict[tuple[str, int], Outcome] = {}
        for one in self.sums(where):
            known = found.setdefault((one.address, one.port), Outcome())
            known.succeeded += one.succeeded
            known.failed += one.failed
            known.aborted += one.aborted
            if one.failed:
                known.reason = one.reason
        return found

    def outcome(self, where: Worker | int, host: str, port: int) -> Outcome:
        """Of one peer; nothing happened there: all zero."""
        return self.outcomes(where).get((host, port), Outcome())

    def await_outcome(self, where: Worker | int, host: str, port: int) -> Outcome:
        """outcome(), once there is one: some come from softirqs, after the caller went on."""
        until(lambda: (host, port) in self.outcomes(where), f"an event about {host}:{port}")
        return self.outcome(where, host, port)


@contextmanager
def recording() -> Iterator[Recorder]:
    """A loaded and attached program whose events nobody reads but the test."""
    tracer = open_tracer()
    try:
        yield Recorder(tracer)
    finally:
        tracer.close()
