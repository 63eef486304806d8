# SPDX-License-Identifier: MIT
"""Node objects, read when a check needs them; each beside the heartbeat that was known before the read.

A heartbeat vouches for the object at the time of its renewal. So the heartbeat that counts for an
object is the last one seen before it was read: a later one might vouch for a newer object.

Where checks ask for few nodes, each is read by itself. Where they ask for many, all are read in pages, at
most once a publish interval: requests then depend on the nodes, and no longer on how many Pactos there are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kubectl_pacto.collect.node_index import index_node
from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiError, ApiNotFound
from kubectl_pacto.kube.lists import list_all
from kubectl_pacto.kube.paths import node_observations
from kubectl_pacto.model.bounds import PUBLISH_INTERVAL_SECONDS, STALENESS_INTERVALS
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.kube import Lease, Pod, Service, Unreadable, Workload
from kubectl_pacto.model.node import NodeRuntimeObservation
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Heartbeat

LOG: Final = logging.getLogger(__name__)
MAX_AGE: Final = 10.0
KEPT_SECONDS: Final = 900.0
ONE_BY_ONE: Final = 20
# of all nodes: an eighth of them asked for within a publish interval costs as many requests as eight
# times the bytes are worth
FEW_SHARE: Final = 8
# a read of all nodes may take this share of the time
COST_SHARE: Final = 4.0


class Beats(Protocol):
    """Who knows heartbeats."""

    def get(self, name: str) -> Heartbeat | None:
        """A node's heartbeat."""

    def all(self) -> dict[str, Heartbeat]:
        """The heartbeats of all nodes."""

    def published(self, name: str, stamp: float | None) -> Heartbeat | None:
        """When a node object was last written: the heartbeat of a node that has no other."""

    def lease(self, name: str) -> Lease | None:
        """A node's Lease, which says how long it holds."""

    def __len__(self) -> int:
        """How many nodes have a heartbeat."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node object as read at a monotonic time, without its pods, None if there is none; its heartbeat.

    `views` holds what it says of each pod by UID, packed as `node_index` packs it.
    """

    node: NodeRuntimeObservation | None
    heartbeat: Heartbeat | None
    read_at: float
    views: Mapping[str, bytes] = field(default_factory=dict)


class NodeObjects:
    """The node objects that checks have needed of late."""

    def __init__(
        self,
        namespace: str,
        beats: Beats,
        *,
        max_age: float = MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._namespace = namespace
        self._beats = beats
        self._max_age = max_age
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        self._asked_before = 0
        self._asked_since = clock()
        self._cost = 0.0
        self._failed_at = float("-inf")
        self.records: dict[str, NodeRecord] = {}
        self.reads = 0

    def refresh(self, client: Client, names: Iterable[str]) -> None:
        """Have the objects of these nodes as they are now, give or take an age; errors leave the old."""
        asked = set(names)
        if not self._too_old(asked):
            # nobody waits for a read that is of no use to him
            self._asked.update(asked)
            return
        with self._lock:
            self._evict()
            self._asked.update(asked)
            wanted = self._too_old(asked)
            if wanted and self._reads_all:
                self._read_all(client, wanted)
                return
            for name in wanted:
                self._read(client, name)

    @property
    def _reads_all(self) -> bool:
        """Whether so many nodes are asked for that all are read together."""
        many = max(len(self._asked), self._asked_before)
        return many > max(ONE_BY_ONE, len(self._beats) // FEW_SHARE)

    def _age_of(self, name: str) -> float:
        """How old an object may be: older where reading all of them is dear, never more than its interval.

        An object as old as the staleness bound would read as stale, however well its node does.
        """
        lease, age = self._beats.lease(name), self._max_age
        if age >= MAX_AGE:  # one that was told to be younger is never older
            age = max(age, min(COST_SHARE * self._cost, PUBLISH_INTERVAL_SECONDS))
        return min(age, lease.duration / STALENESS_INTERVALS) if lease and lease.duration else age

    def _too_old(self, names: set[str]) -> list[str]:
        now = self._clock()
        return sorted(
            name
            for name in names
            if (found := self.records.get(name)) is None or now - found.read_at > self._age_of(name)
        )

    def _read(self, client: Client, name: str) -> None:
        before, now = self._beats.get(name), self._clock()
        self.reads += 1
        try:
            raw = client.get(node_observations(self._namespace, name))
        except ApiNotFound:
            self.records[name] = NodeRecord(None, None, now)
        except ApiError as error:
            LOG.warning("%s", error)
            # what was read before ages, and its heartbeat with it
            self.records.setdefault(name, NodeRecord(None, None, now))
        else:
            self._keep(name, raw, before, now)

    def _read_all(self, client: Client, wanted: Iterable[str]) -> None:
        """A page at a time, each object packed before the next; a list of one moment, as its first page."""
        now, before = self._clock(), self._beats.all()
        seen: set[str] = set()

        def keep(raw: dict[str, Any]) -> None:
            name = str((raw.get("metadata") or {}).get("name") or "")
            seen.add(name)
            self._keep(name, raw, before.get(name), now)

        # after a failure, not each of the checks that wait for it asks again
        if now - self._failed_at > self._max_age:
            self.reads += 1
            try:
                list_all(client, node_observations(self._namespace), keep)
            except ApiError as error:
                LOG.warning("%s", error)
                self._failed_at = now
            else:
                for name in self.records.keys() - seen:
                    del self.records[name]
                self._cost = self._clock() - now
        for name in wanted:
            self.records.setdefault(name, NodeRecord(None, None, now))

    def _keep(self, name: str, raw: Mapping[str, Any], before: Heartbeat | None, now: float) -> None:
        try:
            node, views = index_node(raw)
        except MalformedObject:
            self.records[name] = NodeRecord(None, None, now)
            return
        if before is None:
            before = self._beats.published(node.name, node.last_published)
        self.records[node.name] = NodeRecord(node, before, now, views)

    def _evict(self) -> None:
        """Forget, once an interval, who was asked for before, and what nobody has asked for in a while."""
        now = self._clock()
        if now - self._asked_since < PUBLISH_INTERVAL_SECONDS:
            return
        self._asked_before, self._asked, self._asked_since = len(self._asked), set(), now
        for name in [name for name, record in self.records.items() if record.read_at < now - KEPT_SECONDS]:
            del self.records[name]

    def of(self, names: Iterable[str]) -> dict[str, NodeRecord]:
        """The records of these nodes, each with the heartbeat that vouches for its object.

        For one check from now on: other checks have newer ones read meanwhile.
        """
        return {name: found for name in names if (found := self.records.get(name)) is not None}


def pods_of(cluster: Cluster, pacto: Pacto) -> list[Pod]:
    """Every pod that a check of this Pacto may look at: the workload's and those behind its Service."""
    namespace = pacto.namespace
    found: list[Pod] = []
    workload = cluster.workload(pacto.workload_kind, namespace, pacto.workload_name)
    if isinstance(workload, Workload):
        found += cluster.pods_selected(namespace, workload.selector)
        if workload.kind == "CronJob":
            for job in cluster.workloads_owned(namespace, "CronJob", workload.name):
                found += cluster.pods_owned(namespace, "Job", job.name)
    service = cluster.service(namespace, pacto.service) if pacto.service else None
    if isinstance(service, Service):
        found += cluster.pods_selected(namespace, service.selector)
    slices = cluster.slices_of(namespace, pacto.service) if pacto.service else ()
    for item in () if isinstance(slices, Unreadable) else slices:
        for endpoint in item.endpoints:
            pod = cluster.pod(namespace, endpoint.pod) if endpoint.pod else None
            found += [pod] if pod is not None else []
    return found


def nodes_of(cluster: Cluster, pacto: Pacto) -> set[str]:
    """The nodes whose objects a check of this Pacto needs."""
    return {pod.node for pod in pods_of(cluster, pacto) if pod.node and pod.running}
