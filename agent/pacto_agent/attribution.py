# SPDX-License-Identifier: MIT
"""Events that nothing names yet: kept until the next map, then counted apart. Pure.

A new pod's first events come before the map that knows it. Another node's sockets on a shared
kernel look the same, so an identity that a fresh map did not know is not waited for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Final, TypeAlias

from pacto_agent.flows import ConnectionSums, ListenEvent
from pacto_agent.view import View

WAITING_EVENTS: Final = 4096
STRANGERS: Final = 4096  # identities that no map knew, the last ones

Identity: TypeAlias = tuple[int, int, int]  # cgroup, namespace, cookie


class Attribution:
    """Between the tracer and the view; `unattributed` counts events that no map named."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._listens: dict[int, ListenEvent] = {}  # by inode: the last event of a socket is its state
        self._connections: list[ConnectionSums] = []
        self._old_listens: dict[int, ListenEvent] = {}  # those that waited when the next map was begun
        self._old_connections: list[ConnectionSums] = []
        self._strangers: dict[Identity, None] = {}  # in the order of their giving up
        self.unattributed = 0

    @property
    def waiting(self) -> bool:
        """Whether some event's owner may be found by a new map."""
        return bool(self._listens or self._connections or self._old_listens or self._old_connections)

    def listens(self, events: Iterable[ListenEvent]) -> None:
        """Apply listen events in their order."""
        for event in events:
            inode = event.socket.inode
            if not event.began:
                self._listens.pop(inode, None)
            self._old_listens.pop(inode, None)
            if self._view.apply_listen(event) or not event.began:
                continue
            if self._is_stranger(event) or self._is_full(self._listens, self._old_listens):
                self.unattributed += 1
            else:
                self._listens[inode] = event

    def connections(self, sums: Iterable[ConnectionSums], now: float) -> None:
        """Apply summed connections."""
        for one in sums:
            if self._view.apply_connections(one, now):
                continue
            if self._is_stranger(one) or self._is_full(self._connections, self._old_connections):
                self.unattributed += _events(one)
            else:
                self._connections.append(one)

    @staticmethod
    def _is_full(*waiting: Sized) -> bool:
        return sum(map(len, waiting)) >= WAITING_EVENTS

    def _is_stranger(self, event: ListenEvent | ConnectionSums) -> bool:
        return _identity(event) in self._strangers

    def _give_up(self, event: ListenEvent | ConnectionSums, events: int) -> None:
        self.unattributed += events
        self._strangers.pop(_identity(event), None)
        self._strangers[_identity(event)] = None
        if len(self._strangers) > STRANGERS:
            del self._strangers[next(iter(self._strangers))]

    def begin_map(self) -> None:
        """The node is about to be read for a new map: what waits now came before it."""
        self._old_listens |= self._listens
        self._old_connections += self._connections
        self._listens, self._connections = {}, []

    def retry(self, now: float) -> None:
        """The new map is in force: name what waited when it was begun, give up on what it does not know.

        What came while it was made may be of a pod that it is too old for: that waits for the next one.
        """
        listens, self._old_listens = self._old_listens, {}
        connections, self._old_connections = self._old_connections, []
        for event in listens.values():
            if not self._view.apply_listen(event, settled=True):
                self._give_up(event, 1)
        for one in connections:
            if not self._view.apply_connections(one, now, settled=True):
                self._give_up(one, _events(one))
        newer, self._listens = self._listens, {}
        self.listens(newer.values())
        sums, self._connections = self._connections, []
        self.connections(sums, now)


def _identity(event: ListenEvent | ConnectionSums) -> Identity:
    return event.cgroup_id, event.netns, event.cookie


def _events(sums: ConnectionSums) -> int:
    return sums.succeeded + sums.failed + sums.aborted
