# SPDX-License-Identifier: MIT
"""Which pod a socket belongs to: by the cgroup that created it, else by its network namespace.

A PodMap is made whole at each resync from processes and cgroups, and never changed in place. Pure:
podscan reads what it is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from pacto_agent import cgroups
from pacto_native.rows import ProcessRow

ROOT_CGROUP: Final = 1
PIDS_PER_NAMESPACE: Final = 8


class Owner(Enum):
    """Whose a socket is."""

    POD = "pod"
    FOREIGN = "foreign"  # two identities that contradict each other
    IGNORED = "ignored"  # the node's own, or a pod's outside its own namespace
    UNKNOWN = "unknown"  # nothing here names it: not mapped yet, gone, or another node's


@dataclass(frozen=True, slots=True)
class Named:
    """The answer for one socket; `uid` is the pod of Owner.POD, else empty."""

    owner: Owner
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one pod lives: its own network namespace is that of its oldest process.

    `pids`: some live processes of that namespace, oldest first; empty: none now, and the rest is
    what was last known. `netns` 0: never mapped. `by_cgroup`: its sockets' cgroups can be trusted.
    """

    uid: str
    netns: int = 0
    pids: tuple[int, ...] = ()
    started: int = 0  # of the oldest process, in the mapper's unit since boot
    started_at: float = 0.0  # the same in POSIX seconds, 0 where the mapper does not know the boot's
    cookie: int = 0  # the namespace's cookie, 0 where the mapper cannot tell
    by_cgroup: bool = False
    host_network: bool = False
    shared: bool = False

    @property
    def mapped(self) -> bool:
        """Whether the pod has a namespace of its own that a process of it is in now."""
        return bool(self.netns and self.pids and not self.host_network and not self.shared)


@dataclass(frozen=True, slots=True)
class PodMap:
    """All pods of the node at one moment; `denied`: processes whose namespace could not be read."""

    places: Mapping[str, Place] = field(default_factory=dict)
    owners: Mapping[int, str] = field(default_factory=dict)  # netns -> uid, for pods' own namespaces
    cgroup_pods: Mapping[int, str] = field(default_factory=dict)  # cgroup id -> uid, empty outside pods
    namespaces: frozenset[int] = frozenset()  # all that a process of this node is in
    steady: frozenset[int] = frozenset()  # namespaces whose pod had them in the map before as well
    node_netns: int = 0
    denied: int = 0
    processes: int = 0

    def name(self, cgroup_id: int, netns: int, cookie: int = 0, *, settled: bool = False) -> Named:
        """Whose socket it is that `cgroup_id` created in `netns`.

        Namespace inodes are used again at once: where both know the cookie, it must be the same. Where
        not, a cgroup that is younger than the map may be the next pod's. `settled`: the event came
        between the map before and this one, so in a steady namespace it is that pod's all the same.
        """
        place = self.places.get(self.owners.get(netns, ""))
        if place is not None and place.cookie and cookie and place.cookie != cookie:
            return Named(Owner.UNKNOWN)
        by_cgroup = self.cgroup_pods.get(cgroup_id) if cgroup_id > ROOT_CGROUP else None
        creator = self.places.get(by_cgroup) if by_cgroup else None
        if creator and creator.by_cgroup:
            return self._named_by_cgroup(creator, place, netns)
        if place is None:
            known = netns in self.namespaces or by_cgroup == ""
            return Named(Owner.IGNORED if known else Owner.UNKNOWN)
        if by_cgroup == "" and place.by_cgroup:
            # a node proxy or a port-forward inside the pod's namespace
            return Named(Owner.FOREIGN)
        if by_cgroup and by_cgroup != place.uid and creator and not creator.pids:
            # the next pod's: its cgroup was seen, and none of its processes yet
            return Named(Owner.UNKNOWN)
        certain = (place.cookie and cookie) or (settled and netns in self.steady)
        if by_cgroup is None and cgroup_id > ROOT_CGROUP and place.by_cgroup and not certain:
            return Named(Owner.UNKNOWN)
        return Named(Owner.POD, place.uid)

    def _named_by_cgroup(self, creator: Place, place: Place | None, netns: int) -> Named:
        if place is not None:
            return Named(Owner.POD, creator.uid) if place is creator else Named(Owner.FOREIGN)
        if creator.host_network or creator.shared or netns in self.namespaces:
            return Named(Owner.IGNORED)
        return Named(Owner.UNKNOWN)  # a namespace that no process was in when the map was made


@dataclass(frozen=True, slots=True)
class IdentifiedProcess:
    """One process as the kernel's iterator tells it; ids of its cgroups instead of paths."""

    pid: int
    parent: int
    started: int  # nanoseconds since boot
    netns: int
    cookie: int
    cgroup_id: int
    v1_cgroup_id: int


@dataclass(slots=True)
class _Process:
    """One process, and the pod that its cgroups name."""

    pid: int
    parent: int
    started: int
    netns: int
    pod: cgroups.ProcessPod
    cookie: int = 0


class PodMapBuilder:
    """Collects processes and cgroups; `finish` makes the map."""

    def __init__(self, own_uid: str = "", *, boot_at: float = 0.0, per_second: int = 1) -> None:
        """`boot_at`: POSIX seconds of the boot; `per_second`: the unit of processes' starts."""
        self._own_uid = own_uid
        self._boot_at = boot_at
        self._per_second = per_second
        self._texts: dict[bytes, cgroups.ProcessPod] = {}
        self._processes: dict[int, _Process] = {}
        self._cgroup_pods: dict[int, str] = {}
        self._v2_named: dict[int, cgroups.PathPod] = {}
        self._v1_named: dict[int, cgroups.PathPod] = {}
        self._existing: set[str] = set()

    def add_process(self, row: ProcessRow) -> None:
        """One process of the node."""
        pid, parent, started, netns, text = row
        pod = self._texts.get(text)
        if pod is None:
            pod = self._texts[text] = cgroups.pod_of_process(text, self._own_uid)
        self._processes[pid] = _Process(pid, parent, started, netns, pod)

    def add_identified(self, row: IdentifiedProcess) -> None:
        """One process whose cgroups are known by id; after the directories of add_cgroup."""
        v1 = self._v1_named.get(row.v1_cgroup_id)
        v2 = self._v2_named.get(row.cgroup_id)
        named = v1 or v2
        pod = cgroups.ProcessPod()
        if named is not None:
            pod = cgroups.ProcessPod(named.uid, named.helper, v2 is not None and v2.uid == named.uid)
        self._processes[row.pid] = _Process(row.pid, row.parent, row.started, row.netns, pod, row.cookie)

    def add_cgroup(self, inode: int, path: str, *, v2: bool) -> None:
        """One directory of a cgroup tree; only the v2 tree's inodes are ids of sockets' cgroups."""
        named = cgroups.pod_of_path(path)
        if v2:
            self._cgroup_pods[inode] = named.uid if named else ""
        if named:
            (self._v2_named if v2 else self._v1_named)[inode] = named
            self._existing.add(named.uid)

    def finish(self, previous: PodMap | None = None, *, denied: int = 0) -> PodMap:
        """The map; pods that exist without a process keep the place of `previous`."""
        node_netns = self._node_netns()
        places = self._places(node_netns)
        for uid in self._existing - places.keys():
            known = previous.places.get(uid) if previous else None
            places[uid] = replace(known, pids=()) if known else Place(uid)
        owners = _owners(places)
        places = {
            uid: replace(
                place, shared=bool(place.pids) and not place.host_network and owners.get(place.netns) != uid
            )
            for uid, place in places.items()
        }
        return PodMap(
            places=places,
            owners={netns: uid for netns, uid in owners.items() if uid},
            cgroup_pods=self._cgroup_pods,
            namespaces=frozenset(process.netns for process in self._processes.values()),
            steady=_steady(places, previous),
            node_netns=node_netns,
            denied=denied,
            processes=len(self._processes),
        )

    def _node_netns(self) -> int:
        """The namespace of the runtime's shims: outside every pod, or a monitor's, with a pod's children."""
        votes: Counter[int] = Counter()
        for process in self._processes.values():
            parent = self._processes.get(process.parent)
            if parent is None or not process.pod.uid or process.pod.helper:
                continue
            if parent.pod.helper or not parent.pod.uid:
                votes[parent.netns] += 1
        return min(votes, key=lambda netns: (-votes[netns], netns)) if votes else 0

    def _places(self, node_netns: int) -> dict[str, Place]:
        members: dict[str, list[_Process]] = {}
        for process in self._processes.values():
            if process.pod.uid and not process.pod.helper:
                members.setdefault(process.pod.uid, []).append(process)
        places = (_place(uid, processes, node_netns) for uid, processes in members.items())
        return {place.uid: self._dated(place) for place in places}

    def _dated(self, place: Place) -> Place:
        if not self._boot_at:
            return place
        return replace(place, started_at=self._boot_at + place.started / self._per_second)


def _place(uid: str, processes: list[_Process], node_netns: int) -> Place:
    processes.sort(key=lambda process: (process.started, process.pid))
    oldest = processes[0]
    inside = [process.pid for process in processes if process.netns == oldest.netns]
    return Place(
        uid=uid,
        netns=oldest.netns,
        pids=tuple(inside[:PIDS_PER_NAMESPACE]),
        started=oldest.started,
        cookie=oldest.cookie,
        by_cgroup=all(process.pod.by_v2 for process in processes),
        host_network=oldest.netns == node_netns,
    )


def _steady(places: Mapping[str, Place], previous: PodMap | None) -> frozenset[int]:
    """The namespaces of pods whose oldest process is the one of the map before."""
    before = previous.places if previous else {}
    return frozenset(
        place.netns
        for uid, place in places.items()
        if place.pids
        and (known := before.get(uid))
        and known.pids
        and (known.netns, known.started) == (place.netns, place.started)
    )


def _owners(places: Mapping[str, Place]) -> dict[int, str]:
    """The pod of each namespace; empty where several pods call it their own."""
    owners: dict[int, str] = {}
    live_first = sorted(places.values(), key=lambda place: not place.pids)
    for place in live_first:
        if not place.netns or place.host_network:
            continue
        if place.netns not in owners:
            owners[place.netns] = place.uid
        elif place.pids:  # a namespace only remembered was used again: it is the living pod's
            owners[place.netns] = ""
    return owners
