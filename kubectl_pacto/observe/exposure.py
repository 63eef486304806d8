# SPDX-License-Identifier: MIT
"""How far an interface is exposed: external, internal, or not known. Read by the visibility rule.

External only on positive evidence of an address outside private networks; internal only for a
ClusterIP Service that nothing routes to from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from kubectl_pacto.model.addresses import is_public
from kubectl_pacto.model.kube import Backend, Ingress, Service, ServicePort, Unreadable
from kubectl_pacto.model.snapshot import Snapshot

_AWS = "service.beta.kubernetes.io/aws-load-balancer-"
# annotation -> the value (in lower case) that says internal
INTERNAL_ANNOTATIONS: Final[Mapping[str, str]] = {
    "networking.gke.io/load-balancer-type": "internal",
    "cloud.google.com/load-balancer-type": "internal",
    _AWS + "scheme": "internal",
    "service.beta.kubernetes.io/azure-load-balancer-internal": "true",
    "service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type": "private",
    "service.beta.kubernetes.io/oci-load-balancer-internal": "true",
    "service.beta.kubernetes.io/openstack-internal-load-balancer": "true",
    "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type": "intranet",
}
_AWS_INTERNAL: Final = _AWS + "internal"  # any value but false


class Exposure(StrEnum):
    """From where a Service port can be reached."""

    EXTERNAL = "external"
    INTERNAL = "internal"
    UNKNOWN = "unknown"


def is_internal_balancer(annotations: Mapping[str, str]) -> bool:
    """Whether annotations ask the cloud for an internal load balancer; values compare without case."""
    if annotations.get(_AWS_INTERNAL, "false").strip().lower() != "false":
        return True
    return any(
        annotations.get(name, "").strip().lower() == value for name, value in INTERNAL_ANNOTATIONS.items()
    )


def find_exposure(snapshot: Snapshot, service: Service, port: ServicePort) -> tuple[Exposure, str]:
    """The exposure of a Service port, and why, for a person."""
    for ip in service.external_ips:
        if is_public(ip):
            return Exposure.EXTERNAL, f"external IP {ip} of Service {service.name} is public"
    if service.type == "LoadBalancer" and not is_internal_balancer(service.annotations):
        address = _outside(service.balancer_ips, service.balancer_names)
        if address:
            return Exposure.EXTERNAL, f"load balancer address {address} of Service {service.name} is public"
    return _routed(snapshot, service, port)


def _routed(snapshot: Snapshot, service: Service, port: ServicePort) -> tuple[Exposure, str]:
    ingresses = snapshot.cluster.ingresses_in(service.namespace)
    if isinstance(ingresses, Unreadable):
        return Exposure.UNKNOWN, f"cannot read Ingresses: {ingresses.why}"
    routing = [item for item in ingresses if _routes_to(item, service, port)]
    for item in routing:
        address = _outside(item.ips, item.hostnames)
        if address:
            return Exposure.EXTERNAL, f"Ingress {item.name} routes to it from {address}"
    if routing:
        return Exposure.UNKNOWN, f"Ingress {routing[0].name} routes to it and has no public address"
    routes = snapshot.cluster.routes_to(service.namespace, service.name)
    if isinstance(routes, Unreadable):
        return Exposure.UNKNOWN, f"cannot read HTTPRoutes: {routes.why}"
    for route in routes:
        if any(
            (backend.namespace, backend.service) == (service.namespace, service.name)
            and _is_port(backend, port)
            for backend in route.backends
        ):
            return Exposure.UNKNOWN, f"HTTPRoute {route.name} routes to it; its gateway is not read"
    # an external IP that got here is a private one, which exposes to private networks alone
    if service.type == "ClusterIP":
        return Exposure.INTERNAL, f"Service {service.name} is a ClusterIP that nothing routes to"
    return Exposure.UNKNOWN, f"Service {service.name} is a {service.type} with no address known to be public"


def _outside(ips: Iterable[str], hostnames: Iterable[str]) -> str:
    """The first address outside private networks, empty if there is none."""
    for ip in ips:
        if is_public(ip):
            return ip
    return next((name for name in hostnames if not name.lower().startswith("internal-")), "")


def _routes_to(ingress: Ingress, service: Service, port: ServicePort) -> bool:
    return any(item.service == service.name and _is_port(item, port) for item in ingress.backends)


def _is_port(backend: Backend, port: ServicePort) -> bool:
    return backend.port in (0, port.number) or (bool(port.name) and backend.port == port.name)
