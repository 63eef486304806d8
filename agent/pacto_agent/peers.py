# SPDX-License-Identifier: MIT
"""The outbound connections of one pod, per peer address and port, within bounds. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from kubectl_pacto.model.bounds import PEER_RETENTION_SECONDS
from kubectl_pacto.model.node import FailureReason, Peer
from pacto_agent.flows import Connection, ConnectionSums

PeerKey: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _State:
    """What is known of one peer; times in POSIX seconds."""

    succeeded: int = 0
    failed: int = 0
    aborted: int = 0
    last_success: float | None = None
    last_failure: float | None = None
    last_attempt: float = 0.0
    reason: FailureReason = FailureReason.NONE
    open: int = 0
    open_since: float | None = None


class Peers:
    """All peers of one pod; `cut_until`: until when a peer that a bound cut would still be kept."""

    def __init__(self) -> None:
        self._states: dict[PeerKey, _State] = {}
        self.cut_until = 0.0

    def __len__(self) -> int:
        return len(self._states)

    def add(self, sums: ConnectionSums, now: float) -> None:
        """Connections that the events told."""
        state = self._states.setdefault((sums.address, sums.port), _State())
        state.succeeded += sums.succeeded
        state.failed += sums.failed
        state.aborted += sums.aborted
        state.last_success = _later(state.last_success, sums.last_success)
        if sums.last_failure is not None and sums.last_failure >= (state.last_failure or 0.0):
            state.last_failure, state.reason = sums.last_failure, sums.reason
        times = [time for time in (sums.last_success, sums.last_failure) if time is not None]
        # an abort has no time of its own: it was seen now
        state.last_attempt = max(state.last_attempt, *times) if times else now

    def set_open(self, connections: Iterable[Connection], now: float) -> None:
        """The outbound connections that a resync found, instead of those of the one before."""
        held: dict[PeerKey, int] = {}
        pending: set[PeerKey] = set()
        for connection in connections:
            key = (connection.address, connection.port)
            if connection.pending:
                pending.add(key)
            else:
                held[key] = held.get(key, 0) + 1
        for key in held.keys() | pending:
            self._states.setdefault(key, _State(last_attempt=now))
        for key, state in self._states.items():
            state.open = held.get(key, 0)
            state.open_since = (state.open_since or now) if state.open else None
            if key in pending:
                state.last_failure = state.last_attempt = now
                state.reason = FailureReason.PENDING

    def adopt(self, peers: Iterable[Peer]) -> None:
        """Take over what an agent before this one knew; what this one saw itself is added to it."""
        for peer in peers:
            state = self._states.setdefault((peer.address, peer.port), _State())
            state.succeeded += peer.succeeded
            state.failed += peer.failed
            state.aborted += peer.aborted
            state.last_success = _later(state.last_success, peer.last_success)
            if peer.last_failure is not None and peer.last_failure > (state.last_failure or 0.0):
                state.last_failure, state.reason = peer.last_failure, peer.failure_reason
            state.last_attempt = max(state.last_attempt, peer.last_success or 0.0, peer.last_failure or 0.0)
            if state.open and peer.open and peer.open_since is not None:
                state.open_since = peer.open_since

    def prune(self, now: float) -> None:
        """Forget peers past their retention; one that is open stays."""
        expired = now - PEER_RETENTION_SECONDS
        for key in [
            key for key, state in self._states.items() if not state.open and state.last_attempt < expired
        ]:
            del self._states[key]

    def cut(self, limit: int, now: float) -> None:
        """Keep the `limit` peers that were tried last, open ones before all."""
        excess = len(self._states) - limit
        if excess <= 0:
            return
        order = sorted(
            self._states, key=lambda key: (bool(self._states[key].open), self._states[key].last_attempt)
        )
        for key in order[:excess]:
            del self._states[key]
        self.was_cut(now)

    def was_cut(self, now: float) -> None:
        """Some peer is not here that a bound cut, now or before the events came here."""
        self.cut_until = now + PEER_RETENTION_SECONDS

    def snapshot(self) -> tuple[Peer, ...]:
        """The peers as published, in the order of address and port."""
        return tuple(
            Peer(
                address=address,
                port=port,
                succeeded=state.succeeded,
                failed=state.failed,
                aborted=state.aborted,
                last_success=state.last_success,
                last_failure=state.last_failure,
                failure_reason=state.reason,
                open=state.open,
                open_since=state.open_since,
            )
            for (address, port), state in sorted(self._states.items())
        )


def _later(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
