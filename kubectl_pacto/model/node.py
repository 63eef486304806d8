# SPDX-License-Identifier: MIT
"""One node's view of its pods' TCP sockets, as the node agent publishes it.

Built by the agent's view, read by the operator's observers. Frozen data: nothing here
reads a clock, a file or a socket. All times are POSIX seconds in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from kubectl_pacto.model import bounds

AGENT_NAMESPACE: Final = bounds.AGENT_NAMESPACE
AGENT_LABELS: Final = MappingProxyType(
    {"app.kubernetes.io/name": "pacto-node-agent", "app.kubernetes.io/part-of": "pacto"}
)


class CollectionState(StrEnum):
    """How well the agent of a node collects."""

    RUNNING = "Running"
    DEGRADED = "Degraded"
    FAILED = "Failed"


class CollectionReason(StrEnum):
    """Why collection is not Running; NONE while it is."""

    NONE = ""
    POD_LIMIT_EXCEEDED = "PodLimitExceeded"
    RESYNC_FAILED = "ResyncFailed"
    EVENTS_DROPPED = "EventsDropped"
    LOAD_FAILED = "LoadFailed"
    ATTACH_FAILED = "AttachFailed"
    RING_BUFFER_FAILED = "RingBufferFailed"

    @property
    def state(self) -> CollectionState:
        """The collection state that this reason belongs to."""
        match self:
            case CollectionReason.NONE:
                return CollectionState.RUNNING
            case (
                CollectionReason.LOAD_FAILED
                | CollectionReason.ATTACH_FAILED
                | CollectionReason.RING_BUFFER_FAILED
            ):
                return CollectionState.FAILED
            case _:
                return CollectionState.DEGRADED


class PodReason(StrEnum):
    """Why the view of one pod is not complete."""

    HOST_NETWORK = "HostNetwork"
    NOT_MAPPED = "NotMapped"
    SHARED_NAMESPACE = "SharedNamespace"
    NAMESPACE_CHANGED = "NamespaceChanged"
    EVENTS_DROPPED = "EventsDropped"
    TRUNCATED = "Truncated"


class FailureReason(StrEnum):
    """Why the last failed connection to a peer failed; NONE if none did."""

    NONE = ""
    REFUSED = "refused"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    RESET = "reset"
    OTHER = "other"
    PENDING = "pending"


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A listening TCP socket; `v6only` is None where the kernel did not say (or for IPv4)."""

    address: str
    port: int
    v6only: bool | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """What is known of a pod's outbound connections to one address and port."""

    address: str
    port: int
    succeeded: int = 0
    failed: int = 0
    aborted: int = 0
    last_success: float | None = None
    last_failure: float | None = None
    failure_reason: FailureReason = FailureReason.NONE
    open: int = 0
    open_since: float | None = None


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod of the node: `uid` as its cgroup names it (a static pod's is its config hash)."""

    uid: str
    baseline_at: float | None = None
    complete: bool = False
    reasons: tuple[PodReason, ...] = ()
    listeners: tuple[Listener, ...] = ()
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True, slots=True)
class Collection:
    """The state of collection on a node, with its counters since the agent started."""

    reason: CollectionReason = CollectionReason.NONE
    message: str = ""
    started_at: float | None = None
    last_resync: float | None = None
    connections_since: float | None = None
    dropped_events: int = 0
    unattributed_events: int = 0
    foreign_events: int = 0
    api_requests_per_minute: int | None = None  # None where no API is asked
    state: CollectionState = CollectionState.RUNNING


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """Facts about the node and its agent, for people."""

    kernel_release: str = ""
    cgroup_mode: str = ""
    boot_id: str = ""
    agent_version: str = ""
    mapper: str = ""


@dataclass(frozen=True, slots=True)
class NodeRuntimeObservation:
    """The object that the agent of node `node_name` publishes; `name` must equal it to count."""

    name: str
    node_name: str
    last_published: float | None = None
    namespace: str = AGENT_NAMESPACE
    labels: dict[str, str] = field(default_factory=lambda: dict(AGENT_LABELS))
    collection: Collection = field(default_factory=Collection)
    node: NodeInfo = field(default_factory=NodeInfo)
    pods: tuple[PodView, ...] = ()
