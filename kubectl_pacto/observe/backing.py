# SPDX-License-Identifier: MIT
"""Which pods back a Service port, and on which port number and addresses each should listen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kubectl_pacto.model.addresses import IPV4_WILDCARD, IPV6_WILDCARD, canonical, family
from kubectl_pacto.model.kube import Endpoint, EndpointSlice, Pod, Service, ServicePort
from kubectl_pacto.model.node import Listener
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.pods import running_pods
from kubectl_pacto.observe.words import several


@dataclass(slots=True)
class BackingPod:
    """A running pod behind a Service port."""

    pod: Pod
    ports: set[int] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)

    def is_served_by(self, listener: Listener) -> bool:
        """Whether a socket answers on a port and address that this pod's endpoints name."""
        if listener.port not in self.ports:
            return False
        families = {family(address) for address in self.addresses}
        address = canonical(listener.address)
        if address == IPV4_WILDCARD:
            return 4 in families
        if address == IPV6_WILDCARD:
            # where the kernel did not say, the socket counts for both families
            return 6 in families or (4 in families and listener.v6only is not True)
        own = {ip for ip in self.pod.ips if family(ip) in families}
        return address in self.addresses or address in own

    def may_be_served_by(self, listener: Listener) -> bool:
        """Whether a socket has such a port, and an address that nobody can read."""
        return listener.port in self.ports and family(listener.address) == 0


@dataclass(frozen=True, slots=True)
class Backing:
    """What stands behind a Service port.

    `without_pod` names an endpoint that has no running pod, `stand_in` says that no endpoint names a
    pod and the workload's pods take their place, `nil_port` that a slice gives no port number.
    """

    ready: int
    pods: tuple[BackingPod, ...] = ()
    without_pod: str = ""
    stand_in: bool = False
    nil_port: bool = False


def port_slices(slices: Iterable[EndpointSlice], port: ServicePort) -> list[tuple[EndpointSlice, int | None]]:
    """The slices that carry a Service port, each with the number it gives it.

    By name: a slice carries target numbers, which need not be the Service's own.
    """
    found = []
    for item in slices:
        for candidate in item.ports:
            if candidate.name == port.name and candidate.protocol == port.protocol:
                found.append((item, candidate.number))
                break
    return found


def ready_endpoints(slices: Iterable[EndpointSlice]) -> list[Endpoint]:
    """The ready endpoints of some slices."""
    return [endpoint for item in slices for endpoint in item.endpoints if endpoint.ready]


def describe_unready(slices: Iterable[EndpointSlice]) -> str:
    """That none of the endpoints is ready, and which there are; for a person."""
    names = {one.pod or ", ".join(one.addresses) for item in slices for one in item.endpoints}
    if not names:
        return "no ready endpoint, nor any other: does its selector match a pod, with its target port?"
    return f"no ready endpoint: {several(sorted(names))} {'is' if len(names) == 1 else 'are'} not ready"


def find_backing(
    snapshot: Snapshot, service: Service, port: ServicePort, slices: Iterable[EndpointSlice]
) -> Backing:
    """The pods behind a port of a Service of the target's namespace."""
    pods: dict[str, BackingPod] = {}
    numbers: set[int] = set()
    without: set[str] = set()
    ready, names_pod, nil_port = 0, False, False
    for item, number in port_slices(slices, port):
        for endpoint in (endpoint for endpoint in item.endpoints if endpoint.ready):
            ready += 1
            names_pod = names_pod or bool(endpoint.pod or endpoint.pod_uid)
            nil_port = nil_port or number is None
            pod = _pod_of(snapshot, service.namespace, endpoint)
            if pod is None or not pod.running:
                without.add(endpoint.pod or ", ".join(sorted(endpoint.addresses)) or "(no address)")
            else:
                entry = pods.setdefault(pod.uid or pod.name, BackingPod(pod))
                entry.addresses.update(endpoint.addresses)
                entry.ports.update(() if number is None else (number,))
            numbers.update(() if number is None else (number,))
    first_without = min(without, default="")
    if not names_pod and ready:
        stand_ins = tuple(BackingPod(pod, set(numbers), set(pod.ips)) for pod in running_pods(snapshot))
        return Backing(ready, stand_ins, first_without, stand_in=True, nil_port=nil_port)
    ordered = tuple(sorted(pods.values(), key=lambda entry: (entry.pod.name, entry.pod.uid)))
    return Backing(ready, ordered, first_without, nil_port=nil_port)


def _pod_of(snapshot: Snapshot, namespace: str, endpoint: Endpoint) -> Pod | None:
    """The pod that an endpoint names; None if it is gone, or another one by now has its name."""
    pod = snapshot.cluster.pod(namespace, endpoint.pod) if endpoint.pod else None
    if pod is None or (endpoint.pod_uid and pod.uid and endpoint.pod_uid != pod.uid):
        return None
    return pod
