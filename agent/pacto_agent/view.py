# SPDX-License-Identifier: MIT
"""The bounded state of a node: listeners and peers per pod, from events and baselines. Pure.

Events are applied in the order of the ring. A baseline is older than every event applied after
`begin_resync`: for a socket that such an event was about, the event decides, else the baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, overload

from kubectl_pacto.model import bounds
from kubectl_pacto.model.node import Listener, PodReason, PodView
from pacto_agent.flows import ConnectionSums, Cut, ListenEvent, ListeningSocket, Sockets
from pacto_agent.peers import Peers
from pacto_agent.podmap import Owner, Place, PodMap

# SO_REUSEPORT siblings share one published listener; this bounds the sockets behind them.
SOCKETS_PER_POD: Final = 4096
# A cut sorts: who goes through all ports is cut once per so many new peers, and before it is published.
PEERS_BETWEEN_CUTS: Final = 2 * bounds.PEERS_PER_POD
# starts are told in hundredths of a second, connections in thousandths
START_PRECISION_SECONDS: Final = 0.1


@dataclass(slots=True)
class _Pod:
    """What is known of one pod."""

    place: Place
    baseline_at: float | None = None
    covered_netns: int = 0  # the namespace that the baseline was read of
    dropped: bool = False
    sockets: dict[int, ListeningSocket] = field(default_factory=dict)
    sockets_cut: bool = False
    peers: Peers = field(default_factory=Peers)

    def move(self, place: Place) -> None:
        """Follow the pod to where the newest map has it; another namespace's sockets are not its own."""
        if place.netns != self.place.netns and self.place.netns:
            self.sockets.clear()
            self.peers = Peers()
        self.place = place


class View:
    """What the agent knows of its node's pods."""

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}
        self._map = PodMap()
        self._foreign: set[int] = set()  # inodes of listeners that another pod, or none, created
        self._touched: set[int] | None = None  # inodes that events were about since the resync began
        self._dropped_in_resync = False
        self.foreign_events = 0
        self.pod_limit_exceeded = False
        self.rescans: set[str] = set()  # pods with a listener whose port an event did not know

    @property
    def pods(self) -> PodMap:
        """The map in force."""
        return self._map

    def apply_listen(self, event: ListenEvent, *, settled: bool = False) -> bool:
        """One listen or unlisten event; False when nothing here names its owner yet.

        `settled`: it came before the map in force, see PodMap.name.
        """
        inode = event.socket.inode
        if self._touched is not None:
            self._touched.add(inode)
        if not event.began:
            # by inode alone: address and port may be gone when a listener closes
            self._foreign.discard(inode)
            for known in self._pods.values():
                known.sockets.pop(inode, None)
        named = self._map.name(event.cgroup_id, event.netns, event.cookie, settled=settled)
        if named.owner is Owner.FOREIGN:
            self.foreign_events += 1
            if event.began:
                self._foreign.add(inode)
                for known in self._pods.values():  # a rescan may have been quicker than the event
                    known.sockets.pop(inode, None)
        elif named.owner is Owner.POD and event.began and (pod := self._pods.get(named.uid)):
            self._foreign.discard(inode)
            self._listen(pod, event.socket)
        return named.owner is not Owner.UNKNOWN or not event.began

    def _listen(self, pod: _Pod, socket: ListeningSocket) -> None:
        if not socket.port:
            # listen() without bind: the kernel chooses the port after the event
            self.rescans.add(pod.place.uid)
            if self._touched is not None:
                self._touched.discard(socket.inode)
        elif len(pod.sockets) < SOCKETS_PER_POD or socket.inode in pod.sockets:
            pod.sockets[socket.inode] = socket
        else:
            pod.sockets_cut = True

    def apply_connections(self, sums: ConnectionSums, now: float, *, settled: bool = False) -> bool:
        """Summed connection events; False when nothing here names their owner yet."""
        known, pod = self._owner(sums, settled=settled)
        if pod is not None:
            pod.peers.add(sums, now)
            if len(pod.peers) >= PEERS_BETWEEN_CUTS:
                pod.peers.cut(bounds.PEERS_PER_POD, now)
        return known

    def apply_cut(self, cut: Cut, now: float, *, settled: bool = False) -> bool:
        """Connections that were cut: their owner is past a bound; False when nothing here names it yet."""
        known, pod = self._owner(cut, settled=settled)
        if pod is not None:
            pod.peers.was_cut(now)
        return known

    def _owner(self, events: ConnectionSums | Cut, *, settled: bool) -> tuple[bool, _Pod | None]:
        """Whether the caller is known, and its pod if one is watched; what is foreign is counted."""
        named = self._map.name(events.cgroup_id, events.netns, events.cookie, settled=settled)
        if named.owner is Owner.FOREIGN:
            self.foreign_events += events.events
        if named.owner is not Owner.POD:
            return named.owner is not Owner.UNKNOWN, None
        if _is_before(self._map.places[named.uid], events):
            return False, None
        return True, self._pods.get(named.uid)

    def begin_resync(self) -> None:
        """From now on events are newer than the baseline that is about to be read."""
        self._touched = set()
        self._dropped_in_resync = False

    def abandon_resync(self) -> None:
        """The baseline could not be read: nothing of it is applied."""
        self._touched = None

    def set_map(self, pods: PodMap) -> None:
        """Put a new map in force; pods that are gone go, pods past the bound are left out."""
        wanted = self._within_limit(pods)
        for uid in self._pods.keys() - wanted:
            del self._pods[uid]
        for uid in wanted:
            place = pods.places[uid]
            if uid in self._pods:
                self._pods[uid].move(place)
            else:
                self._pods[uid] = _Pod(place)
        self._map = pods

    def _within_limit(self, pods: PodMap) -> set[str]:
        self.pod_limit_exceeded = len(pods.places) > bounds.PODS_PER_NODE
        # known pods first, then the oldest: a pod once seen does not flicker
        order = sorted(
            pods.places.values(), key=lambda place: (place.uid not in self._pods, place.started, place.uid)
        )
        return {place.uid for place in order[: bounds.PODS_PER_NODE]}

    def end_resync(self, baselines: Mapping[str, Sockets], at: float) -> None:
        """Apply what was read per pod; `at` is when the reading began, in POSIX seconds."""
        touched = self._touched or set()
        for uid, sockets in baselines.items():
            if (pod := self._pods.get(uid)) and pod.place.mapped:
                self._apply_baseline(pod, sockets, touched, at)
                pod.baseline_at = at
                pod.covered_netns = pod.place.netns
                pod.dropped = self._dropped_in_resync
        if all(uid in baselines for uid, pod in self._pods.items() if pod.place.mapped):
            seen = {socket.inode for sockets in baselines.values() for socket in sockets.listeners}
            self._foreign &= seen | touched
        self._touched = None

    def rescan(self, baselines: Mapping[str, Sockets]) -> None:
        """Listeners of some pods read again between resyncs; no coverage is claimed from it."""
        for uid, sockets in baselines.items():
            if uid in self._pods:
                pod = self._pods[uid]
                for socket in sockets.listeners:
                    if socket.inode not in pod.sockets and not self._is_foreign(pod, socket):
                        self._listen(pod, socket)
                        if self._touched is not None:
                            self._touched.add(socket.inode)  # read later than the baseline, as an event is
        self.rescans -= baselines.keys()

    def _apply_baseline(self, pod: _Pod, read: Sockets, touched: set[int], at: float) -> None:
        kept = {inode: socket for inode, socket in pod.sockets.items() if inode in touched}
        pod.sockets_cut = False
        before, pod.sockets = pod.sockets, kept
        for socket in read.listeners:
            if socket.inode in touched or self._is_foreign(pod, socket):
                continue
            known = before.get(socket.inode)
            same = known is not None and (known.address, known.port) == (socket.address, socket.port)
            # an event knows V6ONLY, /proc does not
            self._listen(pod, known if same and known is not None else socket)
        own = [one for one in read.outbound if not self._made_elsewhere(pod, one.cgroup_id)]
        pod.peers.set_open(own, at)
        pod.peers.cut(bounds.PEERS_PER_POD, at)

    def _is_foreign(self, pod: _Pod, socket: ListeningSocket) -> bool:
        if self._made_elsewhere(pod, socket.cgroup_id):
            self._foreign.add(socket.inode)
        return socket.inode in self._foreign

    def _made_elsewhere(self, pod: _Pod, cgroup_id: int) -> bool:
        """Whether a baseline knows that another cgroup made a socket of this pod's namespace."""
        named = self._map.name(cgroup_id, pod.place.netns) if cgroup_id else None
        return named is not None and named.owner is Owner.FOREIGN

    def known_sockets(self, uid: str) -> frozenset[int]:
        """The inodes of a pod's listeners as known now."""
        return frozenset(self._pods[uid].sockets) if uid in self._pods else frozenset()

    def note_loss(self) -> None:
        """An event was lost: no pod is complete until a baseline that begins after this."""
        self._dropped_in_resync = True
        for pod in self._pods.values():
            pod.dropped = True

    def adopt(self, pods: Iterable[PodView], now: float) -> None:
        """Take over the peers that an agent before this one knew of the pods that still live."""
        for known in pods:
            if known.uid in self._pods:
                pod = self._pods[known.uid]
                pod.peers.adopt(known.peers)
                pod.peers.prune(now)
                pod.peers.cut(bounds.PEERS_PER_POD, now)

    def prune(self, now: float) -> None:
        """Forget expired peers, and the oldest past each pod's bound and the node's."""
        for pod in self._pods.values():
            pod.peers.prune(now)
            pod.peers.cut(bounds.PEERS_PER_POD, now)
        excess = sum(len(pod.peers) for pod in self._pods.values()) - bounds.PEERS_PER_NODE
        while excess > 0:
            largest = max(self._pods.values(), key=lambda pod: (len(pod.peers), pod.place.uid))
            cut = min(excess, max(1, len(largest.peers) // 8))
            largest.peers.cut(len(largest.peers) - cut, now)
            excess -= cut

    def snapshot(self, now: float) -> Snapshot:
        """All pods as published, in the order of their UIDs; as long as nothing else is told to this view."""
        for pod in self._pods.values():
            pod.peers.cut(bounds.PEERS_PER_POD, now)
        return Snapshot([self._pods[uid] for uid in sorted(self._pods)], now)


class Snapshot(Sequence[PodView]):
    """Pods that are written out when they are asked for: all of a full node at once are MiBs."""

    def __init__(self, pods: list[_Pod], now: float) -> None:
        self._pods = pods
        self._now = now

    def __len__(self) -> int:
        return len(self._pods)

    @overload
    def __getitem__(self, at: int) -> PodView: ...
    @overload
    def __getitem__(self, at: slice) -> Snapshot: ...
    def __getitem__(self, at: int | slice) -> PodView | Snapshot:
        if isinstance(at, slice):
            return Snapshot(self._pods[at], self._now)
        return _pod_view(self._pods[at], self._now)


def _pod_view(pod: _Pod, now: float) -> PodView:
    own = not (pod.place.host_network or pod.place.shared)
    listeners = _published(pod.sockets.values()) if own else ()
    reasons = tuple(_reasons(pod, now, cut=len(listeners) > bounds.LISTENERS_PER_POD))
    return PodView(
        uid=pod.place.uid,
        baseline_at=pod.baseline_at,
        complete=not reasons,
        reasons=reasons,
        listeners=listeners[: bounds.LISTENERS_PER_POD],
        peers=pod.peers.snapshot() if own else (),
    )


def _is_before(place: Place, told: ConnectionSums | Cut) -> bool:
    """Whether these are of an earlier namespace that had the same number, where no cookie says so."""
    if place.cookie and told.cookie:
        return False
    return told.last is not None and told.last < place.started_at - START_PRECISION_SECONDS


def _published(sockets: Iterable[ListeningSocket]) -> tuple[Listener, ...]:
    found: dict[tuple[str, int], bool | None] = {}
    for socket in sockets:
        key = (socket.address, socket.port)
        # siblings on one port: one that also serves IPv4 (or may) makes all of it do so
        found[key] = socket.v6only if key not in found else (found[key] and socket.v6only)
    order = sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))
    return tuple(Listener(address, port, v6only) for (address, port), v6only in order)


def _reasons(pod: _Pod, now: float, *, cut: bool) -> Iterable[PodReason]:
    if pod.place.host_network:
        yield PodReason.HOST_NETWORK
        return
    if pod.place.shared:
        yield PodReason.SHARED_NAMESPACE
        return
    if not pod.place.mapped or pod.baseline_at is None:
        yield PodReason.NOT_MAPPED
    elif pod.covered_netns != pod.place.netns:
        yield PodReason.NAMESPACE_CHANGED
    if pod.dropped:
        yield PodReason.EVENTS_DROPPED
    if cut or pod.sockets_cut or pod.peers.cut_until > now:
        yield PodReason.TRUNCATED
