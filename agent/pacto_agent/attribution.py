# SPDX-License-Identifier: MIT
"""Events that nothing names yet: kept until the next map, then counted apart. Pure.

A new pod's first events come before the map that knows it. Another node's sockets on a shared
kernel look the same, so an identity that a fresh map did not know is not waited for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Final, TypeAlias

from pacto_agent.flows import ConnectionSums, Cut, ListenEvent
from pacto_agent.view import View

WAITING_EVENTS: Final = 4096
WAITING_OF_ONE: Final = WAITING_EVENTS // 8  # connections of one identity: a new pod may be a noisy one
STRANGERS: Final = 4096  # identities that no map knew, the last ones

Identity: TypeAlias = tuple[int, int, int]  # cgroup, namespace, cookie
Event: TypeAlias = ListenEvent | ConnectionSums | Cut


class Attribution:
    """Between the tracer and the view; `unattributed` counts events that no map named."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._listens: dict[int, ListenEvent] = {}  # by inode: the last event of a socket is its state
        self._connections: list[ConnectionSums] = []
        self._old_listens: dict[int, ListenEvent] = {}  # those that waited when the next map was begun
        self._old_connections: list[ConnectionSums] = []
        self._waiting_of: Counter[Identity] = Counter()  # both lists of connections
        self._cuts: dict[Identity, Cut] = {}
        self._old_cuts: dict[Identity, Cut] = {}
        self._strangers: dict[Identity, None] = {}  # in the order of their giving up
        self.unattributed = 0

    @property
    def waiting(self) -> bool:
        """Whether some event's owner may be found by a new map."""
        return any(
            (
                self._listens,
                self._old_listens,
                self._connections,
                self._old_connections,
                self._cuts,
                self._old_cuts,
            )
        )

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
            identity = _identity(one)
            if self._waiting_of[identity] >= WAITING_OF_ONE:
                self._wait_cut(Cut(one.cgroup_id, one.netns, one.events, one.last, one.cookie))
            elif self._is_stranger(one) or self._is_full(self._connections, self._old_connections):
                self.unattributed += one.events
            else:
                self._connections.append(one)
                self._waiting_of[identity] += 1

    def cuts(self, cuts: Iterable[Cut], now: float) -> None:
        """Mark whose connections were cut."""
        for cut in cuts:
            if not self._view.apply_cut(cut, now):
                self._wait_cut(cut)

    def _wait_cut(self, cut: Cut) -> None:
        known = self._cuts.get(_identity(cut))
        if known is None and (self._is_stranger(cut) or self._is_full(self._cuts, self._old_cuts)):
            self.unattributed += cut.events
        else:
            self._cuts[_identity(cut)] = _merged(known, cut)

    @staticmethod
    def _is_full(*waiting: Sized) -> bool:
        return sum(map(len, waiting)) >= WAITING_EVENTS

    def _is_stranger(self, event: Event) -> bool:
        return _identity(event) in self._strangers

    def _give_up(self, event: Event, events: int) -> None:
        self.unattributed += events
        self._strangers.pop(_identity(event), None)
        self._strangers[_identity(event)] = None
        if len(self._strangers) > STRANGERS:
            del self._strangers[next(iter(self._strangers))]

    def begin_map(self) -> None:
        """The node is about to be read for a new map: what waits now came before it."""
        self._old_listens |= self._listens
        self._old_connections += self._connections
        for identity, cut in self._cuts.items():
            self._old_cuts[identity] = _merged(self._old_cuts.get(identity), cut)
        self._listens, self._connections, self._cuts = {}, [], {}

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
                self._give_up(one, one.events)
        cuts, self._old_cuts = self._old_cuts, {}
        for cut in cuts.values():
            if not self._view.apply_cut(cut, now, settled=True):
                self._give_up(cut, cut.events)
        newer, self._listens = self._listens, {}
        self.listens(newer.values())
        sums, self._connections = self._connections, []
        self._waiting_of.clear()
        self.connections(sums, now)
        cuts, self._cuts = self._cuts, {}
        self.cuts(cuts.values(), now)


def _identity(event: Event) -> Identity:
    return event.cgroup_id, event.netns, event.cookie


def _merged(known: Cut | None, cut: Cut) -> Cut:
    if known is None:
        return cut
    times = [at for at in (known.last, cut.last) if at is not None]
    return replace(cut, events=known.events + cut.events, last=max(times, default=None))
