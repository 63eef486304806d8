# SPDX-License-Identifier: MIT
"""How much a pod's kernel view is worth: Complete, Partial, Failed or Stale; and meshes.

Read by every observer that consults the kernel. Worst first: a stale node's Failed is old news.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from kubectl_pacto.model.bounds import PUBLISH_INTERVAL_SECONDS, STALENESS_INTERVALS
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.kube import Lease, Pod
from kubectl_pacto.model.node import AGENT_LABELS, CollectionState, NodeRuntimeObservation, PodView
from kubectl_pacto.model.snapshot import Heartbeat, KernelOptions, Snapshot
from kubectl_pacto.observe.reading import Answer
from kubectl_pacto.observe.words import explain, quoted

DEFAULT_STALENESS = STALENESS_INTERVALS * PUBLISH_INTERVAL_SECONDS
TOO_OLD = "HeartbeatTooOld"
MESH_CONTAINERS = ("istio-proxy", "linkerd-proxy")
MESH_LABEL = "istio.io/dataplane-mode"
YOUNG_REASONS = frozenset({"NotListed", "NotMapped", "BaselineBeforeStart"})


class Level(IntEnum):
    """How much of a pod the kernel view covers, the worst last."""

    COMPLETE = 0
    PARTIAL = 1
    FAILED = 2
    STALE = 3

    @property
    def answer(self) -> Answer:
        """What a question reads when this level keeps it from being answered."""
        match self:
            case Level.STALE:
                return Answer.STALE
            case Level.FAILED:
                return Answer.FAILED
            case Level.PARTIAL | Level.COMPLETE:
                return Answer.INSUFFICIENT


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is known of one pod through its node's agent.

    `heartbeat` is None without one; `staleness` is the bound of the pod's node in seconds.
    """

    pod: Pod
    level: Level
    reasons: tuple[str, ...] = ()
    view: PodView | None = None
    node: NodeRuntimeObservation | None = None
    heartbeat: Heartbeat | None = None
    staleness: float = DEFAULT_STALENESS
    recency: float = DEFAULT_STALENESS

    @property
    def offset(self) -> float:
        """Seconds to add to this node's times to get the checking clock's."""
        return self.heartbeat.offset if self.heartbeat else 0.0

    @property
    def started(self) -> float | None:
        """When the pod started, by the checking clock."""
        return None if self.pod.started is None else self.pod.started + self.offset

    @property
    def latest_start(self) -> float | None:
        """When the pod or the newest of its containers started, by the checking clock."""
        starts = [start for start in (self.pod.started, self.pod.container_started) if start is not None]
        return max(starts) + self.offset if starts else None

    def is_young(self, at: float) -> bool:
        """Whether the pod may be too young for its node to have covered it yet."""
        started = self.started
        return (
            self.level is Level.PARTIAL
            and YOUNG_REASONS.issuperset(self.reasons)
            and (started is None or at - started <= self.staleness)
        )

    @property
    def interval(self) -> float:
        """How often the pod's node publishes, as its staleness tells; at most the default."""
        return min(PUBLISH_INTERVAL_SECONDS, self.staleness / STALENESS_INTERVALS)

    def describe(self) -> str:
        """One clause for a person."""
        what = f"the kernel view of {self.where} is {self.level.name.lower()}"
        return f"{what} ({'; '.join(map(self._why, self.reasons))})" if self.reasons else what

    @property
    def where(self) -> str:
        """The pod and its node, for a person."""
        return f"pod {self.pod.name} on node {self.pod.node or '(none)'}"

    def _why(self, reason: str) -> str:
        if reason == TOO_OLD:
            last = f"was at {format_instant(self.heartbeat.seen_at)}" if self.heartbeat else "is not known"
            return f"{reason}: the node's last heartbeat {last}, and may be {self.staleness:g} s old"
        said = self.node.collection.message if self.node and self.level is Level.FAILED else ""
        return f"{reason}: {quoted(said)}" if said else explain(reason)


def cover(snapshot: Snapshot, pod: Pod) -> Coverage:
    """The coverage of a running pod."""
    kernel = snapshot.options.kernel
    node = _node_object(snapshot, pod)
    lease = snapshot.cluster.lease(kernel.namespace, pod.node)
    staleness = staleness_of(kernel, lease)
    recency = max(kernel.recency or 0.0, staleness)
    if node is None:
        return Coverage(pod, Level.STALE, ("NoNodeObject",), staleness=staleness, recency=recency)
    heartbeat = _heartbeat(snapshot, node)
    known = Coverage(pod, Level.COMPLETE, (), None, node, heartbeat, staleness, recency)
    if heartbeat is None or snapshot.at - heartbeat.seen_at > staleness:
        return replace(known, level=Level.STALE, reasons=(TOO_OLD,))
    if node.collection.state is CollectionState.FAILED:
        return replace(known, level=Level.FAILED, reasons=(node.collection.reason.value or "Failed",))
    view = _view(snapshot, pod)
    reasons = _partial_reasons(snapshot, pod, node, view)
    return replace(known, level=Level.PARTIAL if reasons else Level.COMPLETE, reasons=reasons, view=view)


def staleness_of(kernel: KernelOptions, lease: Lease | None) -> float:
    """How old the heartbeat of this Lease's node may be, in seconds."""
    if kernel.staleness is not None:
        return kernel.staleness
    return float(lease.duration) if lease and lease.duration else DEFAULT_STALENESS


def _node_object(snapshot: Snapshot, pod: Pod) -> NodeRuntimeObservation | None:
    """The pod's node object, if it is one that counts."""
    namespace = snapshot.options.kernel.namespace
    node = snapshot.cluster.node(namespace, pod.node) if pod.node else None
    return None if node is None or why_it_does_not_count(node, namespace) else node


def why_it_does_not_count(node: NodeRuntimeObservation, namespace: str) -> str:
    """Why nobody reads this node object; empty for one named after its node, with the agent's labels."""
    if node.namespace != namespace:
        return f"agents report in namespace {namespace}"
    if node.name != node.node_name:
        return f"its nodeName is {node.node_name or 'empty'}"
    lacking = [f"{key}={value}" for key, value in AGENT_LABELS.items() if node.labels.get(key) != value]
    return f"without the label {' and '.join(lacking)}" if lacking else ""


def _heartbeat(snapshot: Snapshot, node: NodeRuntimeObservation) -> Heartbeat | None:
    """The node's last heartbeat, by the checking clock."""
    kernel = snapshot.options.kernel
    if kernel.heartbeats is not None:
        return kernel.heartbeats.get(node.name)
    # Compare the Lease's renewTime, not the object's time: the object is rewritten only on change,
    # so an old object under a fresh Lease is complete evidence.
    lease = snapshot.cluster.lease(kernel.namespace, node.name)
    renewed = lease.renewed if lease and lease.renewed is not None else node.last_published
    return None if renewed is None else Heartbeat(min(renewed, snapshot.at))


def _view(snapshot: Snapshot, pod: Pod) -> PodView | None:
    # a static pod's cgroup carries the hash of its manifest, which its mirror repeats
    cluster, namespace = snapshot.cluster, snapshot.options.kernel.namespace
    return cluster.view(namespace, pod.node, pod.uid) or cluster.view(namespace, pod.node, pod.config_hash)


def _partial_reasons(
    snapshot: Snapshot, pod: Pod, node: NodeRuntimeObservation, view: PodView | None
) -> tuple[str, ...]:
    """Why the view of a pod on a node that reports is not complete; none if it is."""
    reasons: list[str] = []
    if node.collection.state is CollectionState.DEGRADED:
        reasons.append(node.collection.reason.value or "Degraded")
    if pod.runtime_class and pod.runtime_class not in snapshot.options.kernel.host_kernel_runtimes:
        reasons.append("RuntimeClass")  # its TCP stack may be the guest's, not this kernel's
    if pod.host_network:
        reasons.append("HostNetwork")
    if view is None:
        reasons.append("NotListed")
    else:
        if not view.complete:
            reasons += [reason.value for reason in view.reasons] or ["NotComplete"]
        # both times are the node's own
        if view.baseline_at is None or pod.started is None or view.baseline_at <= pod.started:
            reasons.append("BaselineBeforeStart")
    return tuple(dict.fromkeys(reasons))


def in_mesh(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a proxy of a service mesh accepts this pod's connections in its place."""
    names = (*MESH_CONTAINERS, *snapshot.options.kernel.mesh_proxies)
    if pod.has_mesh_annotation or any(
        container.name in names for container in (*pod.containers, *pod.init_containers)
    ):
        return True
    # what a namespace that could not be read opted into is not known, so its proxy may be there
    if snapshot.cluster.failure("Namespace", "", pod.namespace):
        return True
    # a pod may opt out of what its namespace opted into
    labels = snapshot.cluster.namespace_labels(pod.namespace)
    return pod.labels.get(MESH_LABEL, labels.get(MESH_LABEL)) == "ambient"


def young(coverages: list[Coverage], at: float) -> float | None:
    """Seconds until a node that publishes may have covered these pods, if they lack nothing but age."""
    if not coverages or not all(item.is_young(at) for item in coverages):
        return None
    return max(item.interval for item in coverages)


def worst(coverages: list[Coverage]) -> Coverage | None:
    """The coverage of the pod that is covered worst, the first by name among equals."""
    return max(coverages, key=lambda item: item.level, default=None)


def unproven(snapshot: Snapshot, coverages: list[Coverage]) -> str:
    """Why nothing negative may be concluded from views that are all fresh; empty if it may.

    A process that has just started has seen no heartbeat move, and one whose watch is silent would
    not see it stop.
    """
    if not snapshot.options.kernel.watch_alive:
        return "the watch of node objects shows no sign of life"
    waiting = [item.pod.node for item in coverages if item.heartbeat and not item.heartbeat.renewed]
    return f"node {waiting[0]} has not been seen to renew its heartbeat yet" if waiting else ""
