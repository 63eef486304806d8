# SPDX-License-Identifier: MIT
"""Node objects, read when a check needs them; each beside the heartbeat that was known before the read.

A heartbeat vouches for the object at the time of its renewal. So the heartbeat that counts for an
object is the last one seen before it was read: a later one might vouch for a newer object.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiError, ApiNotFound
from kubectl_pacto.kube.lists import list_all
from kubectl_pacto.kube.paths import node_observations
from kubectl_pacto.model.bounds import STALENESS_INTERVALS
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.kube import Lease, Pod, Service, Unreadable, Workload
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from kubectl_pacto.model.node_codec import decode_node
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Heartbeat

MAX_AGE: Final = 10.0
KEPT_SECONDS: Final = 900.0
ONE_BY_ONE: Final = 20


class Beats(Protocol):
    """Who knows heartbeats."""

    def get(self, name: str) -> Heartbeat | None:
        """A node's heartbeat."""

    def published(self, name: str, stamp: float | None) -> None:
        """When a node object was last written."""

    def lease(self, name: str) -> Lease | None:
        """A node's Lease, which says how long it holds."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node object as read at a monotonic time, None if there is none, and its heartbeat."""

    node: NodeRuntimeObservation | None
    heartbeat: Heartbeat | None
    read_at: float
    views: dict[str, PodView] = field(default_factory=dict)


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
        self.records: dict[str, NodeRecord] = {}
        self.reads = 0

    def refresh(self, client: Client, names: Iterable[str]) -> None:
        """Have these nodes' objects as they are now, give or take an interval; errors leave the old."""
        with self._lock:
            self._evict()
            now = self._clock()
            wanted = sorted(
                name
                for name in set(names)
                if name not in self.records or now - self.records[name].read_at > self._age_of(name)
            )
            if len(wanted) > ONE_BY_ONE:
                self._read_all(client)
                wanted = [name for name in wanted if name not in self.records]
            for name in wanted:
                self._read(client, name)

    def _age_of(self, name: str) -> float:
        # an object as old as the staleness bound would read as stale, however well its node does
        lease = self._beats.lease(name)
        interval = lease.duration / STALENESS_INTERVALS if lease and lease.duration else self._max_age
        return min(self._max_age, interval)

    def _read(self, client: Client, name: str) -> None:
        before, now = self._beats.get(name), self._clock()
        self.reads += 1
        try:
            node = decode_node(client.get(node_observations(self._namespace, name)))
        except (ApiNotFound, MalformedObject):
            self.records[name] = NodeRecord(None, None, now)
        except ApiError:
            # what was read before ages, and its heartbeat with it
            self.records.setdefault(name, NodeRecord(None, None, now))
        else:
            self._keep(node, before, now)

    def _read_all(self, client: Client) -> None:
        """A page at a time, each object cut down before the next page comes."""
        now, before = self._clock(), self._beats
        heartbeats = {name: before.get(name) for name in self.records}
        self.reads += 1

        def keep(raw: dict[str, object]) -> None:
            try:
                node = decode_node(raw)
            except MalformedObject:
                return
            self._keep(node, heartbeats.get(node.name) or before.get(node.name), now)

        try:
            list_all(client, node_observations(self._namespace), keep, limit=100)
        except ApiError:
            return

    def _keep(self, node: NodeRuntimeObservation, before: Heartbeat | None, now: float) -> None:
        if before is None:
            self._beats.published(node.name, node.last_published)
            before = self._beats.get(node.name)
        views = {pod.uid: pod for pod in node.pods}
        self.records[node.name] = NodeRecord(node, before, now, views)

    def _evict(self) -> None:
        limit = self._clock() - KEPT_SECONDS
        for name in [name for name, record in self.records.items() if record.read_at < limit]:
            del self.records[name]

    def heartbeats(self, names: Iterable[str]) -> dict[str, Heartbeat]:
        """The heartbeats that vouch for the objects of these nodes."""
        found = {}
        for name in names:
            record = self.records.get(name)
            if record is not None and record.heartbeat is not None:
                found[name] = record.heartbeat
        return found


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
