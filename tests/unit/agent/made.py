# SPDX-License-Identifier: MIT
"""Short ways to write what the agent's tests are about."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_pacto.model.node import FailureReason, PodView
from pacto_agent.flows import Connection, ConnectionSums, Cut, ListenEvent, ListeningSocket, Sockets
from pacto_agent.podmap import Place, PodMap
from pacto_agent.view import View

NETNS = 10
CGROUP = 110
OUTSIDE = 900
NOW = 1_000_000.0


def one_pod_map(uid: str = "a", *, netns: int = NETNS, pids: tuple[int, ...] = (1,)) -> PodMap:
    """A map of one pod, trusted by its cgroup, and one cgroup outside every pod."""
    return pod_map([Place(uid, netns=netns, pids=pids, by_cgroup=True)])


def pod_map(places: Iterable[Place]) -> PodMap:
    """A map of pods with namespaces of their own; the first has CGROUP, the next ones those after it."""
    listed = list(places)
    return PodMap(
        places={place.uid: place for place in listed},
        owners={
            place.netns: place.uid
            for place in listed
            if place.netns and not place.shared and not place.host_network
        },
        cgroup_pods={OUTSIDE: "", **{CGROUP + number: place.uid for number, place in enumerate(listed)}},
        namespaces=frozenset(place.netns for place in listed if place.pids),
    )


def mapped_view(pods: PodMap | None = None, baseline: Sockets | None = None) -> View:
    """A view with a map, and a baseline of each pod: empty unless given."""
    view = View()
    view.begin_resync()
    view.set_map(pods or one_pod_map())
    view.end_resync({uid: baseline or Sockets() for uid in view.pods.places}, NOW)
    return view


def listen(
    inode: int, port: int = 80, *, address: str = "0.0.0.0", cgroup: int = CGROUP, netns: int = NETNS
) -> ListenEvent:
    """A socket began to listen."""
    return ListenEvent(cgroup, netns, began=True, socket=ListeningSocket(inode, address, port))


def unlisten(inode: int, *, cgroup: int = CGROUP, netns: int = NETNS) -> ListenEvent:
    """A socket stopped; its address and port are gone by then."""
    return ListenEvent(cgroup, netns, began=False, socket=ListeningSocket(inode, "0.0.0.0", 0))


def listening(*sockets: tuple[int, int]) -> Sockets:
    """A baseline: (inode, port) of each listener."""
    return Sockets(tuple(ListeningSocket(inode, "0.0.0.0", port) for inode, port in sockets))


def outbound(*connections: tuple[str, int], pending: bool = False) -> Sockets:
    """A baseline of outbound connections."""
    return Sockets((), tuple(Connection(address, port, pending) for address, port in connections))


def sums(
    address: str = "10.0.0.1",
    port: int = 5432,
    *,
    succeeded: int = 0,
    failed: int = 0,
    aborted: int = 0,
    at: float = NOW,
    reason: FailureReason = FailureReason.REFUSED,
    cgroup: int = CGROUP,
    netns: int = NETNS,
) -> ConnectionSums:
    """Connections of a moment."""
    return ConnectionSums(
        cgroup_id=cgroup,
        netns=netns,
        address=address,
        port=port,
        succeeded=succeeded,
        failed=failed,
        aborted=aborted,
        last_success=at if succeeded else None,
        last_failure=at if failed else None,
        reason=reason if failed else FailureReason.NONE,
    )


def cut(
    events: int = 1, *, at: float | None = NOW, cgroup: int = CGROUP, netns: int = NETNS, cookie: int = 0
) -> Cut:
    """Connections past a caller's share."""
    return Cut(cgroup, netns, events, at, cookie)


def pod_of(view: View, uid: str = "a", now: float = NOW) -> PodView:
    """One pod as published."""
    return next(pod for pod in view.snapshot(now) if pod.uid == uid)


def ports(view: View, uid: str = "a") -> list[int]:
    """The ports a pod listens on as published."""
    return [listener.port for listener in pod_of(view, uid).listeners]
