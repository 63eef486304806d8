# SPDX-License-Identifier: MIT
"""The Kubernetes objects that a check looks at, cut down to the fields it reads.

Built by `decode_*`; frozen, times in POSIX seconds. Empty text stands for a missing field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

IntOrString = int | str
_DIGITS = re.compile("[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The answer of a lookup that failed: the object may or may not exist."""

    why: str


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """The controller of an object."""

    kind: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector; `expressions` are (key, operator, values). Empty selects nothing here."""

    labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.expressions)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector selects an object with these labels."""
        if not self or any(labels.get(key) != value for key, value in self.labels.items()):
            return False
        return all(_holds(labels, *expression) for expression in self.expressions)


def _holds(labels: Mapping[str, str], key: str, operator: str, values: tuple[str, ...]) -> bool:
    match operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Probe:
    """A container's probe; `handler` is httpGet, tcpSocket, grpc or exec."""

    handler: str
    port: IntOrString = 0
    host: str = ""
    initial_delay: int | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod or pod template; `ports` are (name, number)."""

    name: str
    image: str = ""
    ports: tuple[tuple[str, int], ...] = ()
    readiness: Probe | None = None
    liveness: Probe | None = None
    # volumes mounted, each with whether every mount of it here is read-only
    mounts: tuple[tuple[str, bool], ...] = ()

    def port_number(self, port: IntOrString) -> int | None:
        """The number of a port given by number, by name, or, as the kubelet takes it, by digits in a text."""
        if isinstance(port, int):
            return port
        named = next((number for name, number in self.ports if name == port), None)
        return int(port) if named is None and _DIGITS.fullmatch(port) else named


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. `container_started` is when its most recently started running container started."""

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    phase: str = ""
    deleting: bool = False
    started: float | None = None
    container_started: float | None = None
    ready: bool = False
    ips: tuple[str, ...] = ()
    host_network: bool = False
    runtime_class: str = ""
    owner: OwnerRef | None = None
    config_hash: str = ""
    has_mesh_annotation: bool = False
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()

    @property
    def running(self) -> bool:
        """Phase Running, and not being deleted."""
        return self.phase == "Running" and not self.deleting


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a pod template; `source` is the field that says what backs it."""

    name: str
    source: str
    claim: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, StatefulSet, ReplicaSet, Job or CronJob and its pod template.

    `parallel` is how many pods its spec lets run at once (replicas, or a Job's parallelism).
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""
    owner: OwnerRef | None = None
    selector: Selector = field(default_factory=Selector)
    parallel: int = 1
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    claim_templates: tuple[str, ...] = ()
    strategy: str = ""
    pod_management: str = ""
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service."""

    number: int
    name: str = ""
    protocol: str = "TCP"
    target: IntOrString = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A Service; `external` are its external and load balancer IPs, `hostnames` the latter's names."""

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created: float | None = None
    type: str = "ClusterIP"
    selector: Selector = field(default_factory=Selector)
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    balancer_ips: tuple[str, ...] = ()
    balancer_names: tuple[str, ...] = ()
    ports: tuple[ServicePort, ...] = ()

    def port(self, wanted: IntOrString) -> ServicePort | None:
        """The port with this number, or with this name."""
        for port in self.ports:
            if (port.number if isinstance(wanted, int) else port.name) == wanted:
                return port
        return None


@dataclass(frozen=True, slots=True)
class SlicePort:
    """A port of an EndpointSlice; no `number` means it says none."""

    number: int | None
    name: str = ""
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of a slice; `pod` is empty when it names none."""

    addresses: tuple[str, ...]
    ready: bool = True
    pod: str = ""
    pod_uid: str = ""


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    """Some of a Service's endpoints."""

    namespace: str
    name: str
    service: str
    ports: tuple[SlicePort, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace's labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lease:
    """A node agent's heartbeat; `duration` in seconds."""

    namespace: str
    name: str
    renewed: float | None = None
    duration: int | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """Where a route sends: a Service port by number or name, 0 for any."""

    service: str
    port: IntOrString = 0
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Ingress:
    """An Ingress: where it routes to and the addresses its status carries."""

    namespace: str
    name: str
    backends: tuple[Backend, ...] = ()
    ips: tuple[str, ...] = ()
    hostnames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """An HTTPRoute: where it routes to."""

    namespace: str
    name: str
    backends: tuple[Backend, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """A ConfigMap's text data."""

    namespace: str
    name: str
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Secret:
    """That a Secret exists; its data is never decoded."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Monitor:
    """A ServiceMonitor or PodMonitor: whom it selects and its first endpoint with a number for port."""

    kind: str
    namespace: str
    name: str
    labels: Mapping[str, object] | None = None
    port: int | None = None
    path: str = "/metrics"
