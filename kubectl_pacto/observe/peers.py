# SPDX-License-Identifier: MIT
"""The outbound connections of a workload's pods, joined per address, by the checking clock.

Read by the dependency merge and by the search for undeclared dependencies. Only views that are
Complete or Partial are read, and no pod in a mesh: its proxy answers for whoever is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubectl_pacto.model.addresses import canonical
from kubectl_pacto.model.node import Peer
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.addresses import Address, ServiceAddress
from kubectl_pacto.observe.coverage import Coverage, Level, cover, in_mesh
from kubectl_pacto.observe.pods import running_pods


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one pod's view says of one address; times by the checking clock."""

    coverage: Coverage
    last_success: float | None
    last_failure: float | None
    open_since: float | None
    is_open: bool
    failure_reason: str


@dataclass(frozen=True, slots=True)
class Contact:
    """What all pods together say of one address of a Service."""

    address: ServiceAddress
    last_success: float | None
    last_failure: float | None
    is_open: bool
    failure_reason: str
    has_recent_success: bool
    has_recent_failure: bool
    sources: tuple[Coverage, ...]

    @property
    def is_healthy(self) -> bool:
        """A recent success that is not older than the last failure."""
        return self.has_recent_success and _is_not_older(self.last_success, self.last_failure)

    @property
    def is_failing(self) -> bool:
        """A recent failure newer than the last success, at an address that is in use."""
        return (
            self.address.is_live
            and self.has_recent_failure
            and not _is_not_older(self.last_success, self.last_failure)
        )


def _is_not_older(success: float | None, failure: float | None) -> bool:
    return success is not None and (failure is None or success >= failure)


@dataclass(frozen=True)
class Callers:
    """The running pods of the target's workload: how each is covered, which are in a mesh."""

    at: float
    covered: tuple[Coverage, ...] = ()
    meshed: frozenset[str] = frozenset()
    attempts: dict[Address, list[tuple[Coverage, Peer]]] = field(default_factory=dict)

    def contacts(self, addresses: Iterable[ServiceAddress]) -> list[Contact]:
        """What is known of each of these addresses that the pods ever called."""
        found = []
        # in an order of their own: the API gives endpoints in any
        for address in sorted(addresses, key=lambda item: item.address):
            if address.address in self.attempts:
                attempts = [_attempt(coverage, peer) for coverage, peer in self.attempts[address.address]]
                contact = _join(self.at, address, attempts)
                if contact is not None:
                    found.append(contact)
        return found

    def doubtful(self) -> list[Coverage]:
        """The pods that are not covered completely; one in a mesh counts as Partial."""
        return [
            item for item in self.covered if item.level is not Level.COMPLETE or item.pod.name in self.meshed
        ]


def find_callers(snapshot: Snapshot) -> Callers:
    """The running pods of the workload and their connections; nobody where the kernel is not consulted."""
    if not snapshot.options.kernel.enabled:
        return Callers(snapshot.at)
    pods = running_pods(snapshot)
    covered = tuple(cover(snapshot, pod) for pod in pods)
    meshed = frozenset(pod.name for pod in pods if in_mesh(snapshot, pod))
    # pods call far more addresses than anything asks about: what they say of one is read when it is
    attempts: defaultdict[Address, list[tuple[Coverage, Peer]]] = defaultdict(list)
    for coverage in covered:
        if coverage.view is not None and coverage.pod.name not in meshed:
            for peer in coverage.view.peers:
                attempts[canonical(peer.address), peer.port].append((coverage, peer))
    return Callers(snapshot.at, covered, meshed, dict(attempts))


def _attempt(coverage: Coverage, peer: Peer) -> Attempt:
    """One pod's word, without what was before the pod: a reused namespace carries another's history."""
    start = coverage.started

    def shift(instant: float | None) -> float | None:
        shifted = None if instant is None else instant + coverage.offset
        return _unless_before(shifted, start)

    open_since = shift(peer.open_since)
    return Attempt(
        coverage,
        shift(peer.last_success),
        shift(peer.last_failure),
        open_since,
        peer.open > 0 and (peer.open_since is None or open_since is not None),
        peer.failure_reason.value,
    )


def _unless_before(instant: float | None, start: float | None) -> float | None:
    return None if instant is None or (start is not None and instant < start) else instant


def _join(at: float, address: ServiceAddress, attempts: Sequence[Attempt]) -> Contact | None:
    successes: list[float] = []
    failures: list[tuple[float, str]] = []
    recent_success = recent_failure = is_open = False
    sources: list[Coverage] = []
    for item in attempts:
        success = _unless_before(item.last_success, address.since)
        failure = _unless_before(item.last_failure, address.since)
        opened = _unless_before(item.open_since, address.since)
        holds = item.is_open and (item.open_since is None or opened is not None)
        recency = item.coverage.recency
        if success is not None:
            successes.append(success)
            recent_success = recent_success or at - success <= recency
        if failure is not None:
            failures.append((failure, item.failure_reason))
            recent_failure = recent_failure or at - failure <= recency
        is_open = is_open or holds
        if success is not None or failure is not None or holds:
            sources.append(item.coverage)
    if not sources:
        return None
    last_failure, reason = max(failures, default=(None, ""))
    return Contact(
        address,
        max(successes, default=None),
        last_failure,
        is_open,
        reason,
        recent_success,
        recent_failure,
        tuple(sources),
    )
