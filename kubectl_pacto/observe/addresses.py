# SPDX-License-Identifier: MIT
"""Which addresses are a Service's, and since when an address has been its."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_pacto.model.kube import EndpointSlice, Pod, Service
from kubectl_pacto.model.snapshot import Snapshot

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """An address of a Service.

    `since`: connections before it were someone else's (None: nothing to tell). `is_live`: a cluster
    IP or a ready endpoint. `is_traced`: the pod behind it is known, or there is none to know.
    """

    address: Address
    since: float | None = None
    is_live: bool = True
    is_traced: bool = True


def cluster_addresses(service: Service) -> list[ServiceAddress]:
    """Each cluster IP with each TCP port."""
    return [
        ServiceAddress((ip, port.number), service.created)
        for ip in service.cluster_ips
        for port in service.ports
        if port.protocol == "TCP"
    ]


def outer_addresses(service: Service) -> list[ServiceAddress]:
    """Each external and load balancer IP with each TCP port."""
    return [
        ServiceAddress((ip, port.number), service.created)
        for ip in (*service.external_ips, *service.balancer_ips)
        for port in service.ports
        if port.protocol == "TCP"
    ]


def endpoint_addresses(
    snapshot: Snapshot, namespace: str, slices: Iterable[EndpointSlice]
) -> list[ServiceAddress]:
    """Each endpoint's addresses with the TCP ports of its slice."""
    found = []
    for item in slices:
        numbers = [port.number for port in item.ports if port.number and port.protocol == "TCP"]
        for endpoint in item.endpoints:
            since, is_traced = None, True
            if endpoint.pod:
                pod = snapshot.cluster.pod(namespace, endpoint.pod)
                is_traced = pod is not None and (
                    not endpoint.pod_uid or not pod.uid or endpoint.pod_uid == pod.uid
                )
                since = pod_start(snapshot, pod) if pod is not None and is_traced else None
            found += [
                ServiceAddress((ip, number), since, endpoint.ready, is_traced)
                for ip in endpoint.addresses
                for number in numbers
            ]
    return found


def pod_start(snapshot: Snapshot, pod: Pod) -> float | None:
    """When a pod started, by the checking clock."""
    heartbeat = (snapshot.options.kernel.heartbeats or {}).get(pod.node)
    return None if pod.started is None else pod.started + (heartbeat.offset if heartbeat else 0.0)
