# SPDX-License-Identifier: MIT
"""Services, slices, routes and leases from decoded Kubernetes JSON.

Each raises MalformedObject naming the field, if one has the wrong shape.
"""

from __future__ import annotations

from typing import Final

from kubectl_pacto.model.addresses import canonical
from kubectl_pacto.model.fields import Fields, kind_of
from kubectl_pacto.model.kube import (
    Backend,
    ConfigMap,
    Endpoint,
    EndpointSlice,
    HttpRoute,
    Ingress,
    IntOrString,
    Lease,
    Monitor,
    Namespace,
    Secret,
    Selector,
    Service,
    ServicePort,
    SlicePort,
)

SERVICE_LABEL: Final = "kubernetes.io/service-name"
DEFAULT_NAMESPACE: Final = "default"


def name_of(top: Fields) -> tuple[str, str]:
    """Namespace and name of a namespaced object."""
    metadata = top.child("metadata")
    return metadata.text("namespace") or DEFAULT_NAMESPACE, metadata.required_text("name")


def int_or_string(fields: Fields, name: str) -> IntOrString:
    """A port by number or by name, 0 if it is missing."""
    value = fields.raw(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise fields.fail(name, f"must be a port number or a port name, not {kind_of(value)}")
    return value


def decode_service(top: Fields) -> Service:
    """A v1 Service."""
    namespace, name = name_of(top)
    metadata, spec = top.child("metadata"), top.child("spec")
    single = spec.text("clusterIP")
    ips = spec.texts("clusterIPs") or ((single,) if single else ())
    balancers = list(top.child("status").child("loadBalancer").children("ingress"))
    return Service(
        namespace=namespace,
        name=name,
        labels=metadata.text_map("labels"),
        annotations=metadata.text_map("annotations"),
        created=metadata.instant("creationTimestamp"),
        type=spec.text("type") or "ClusterIP",
        selector=Selector(spec.text_map("selector")),
        cluster_ips=tuple(canonical(ip) for ip in ips if ip not in ("", "None")),
        external_ips=tuple(canonical(ip) for ip in spec.texts("externalIPs")),
        balancer_ips=tuple(canonical(ip) for item in balancers if (ip := item.text("ip"))),
        balancer_names=tuple(host for item in balancers if (host := item.text("hostname"))),
        ports=tuple(
            ServicePort(
                number=port.port("port"),
                name=port.text("name"),
                protocol=port.text("protocol") or "TCP",
                target=int_or_string(port, "targetPort"),
            )
            for port in spec.children("ports")
        ),
    )


def decode_slice(top: Fields) -> EndpointSlice:
    """A discovery.k8s.io/v1 EndpointSlice; of no Service if it carries no label that says so."""
    namespace, name = name_of(top)
    return EndpointSlice(
        namespace=namespace,
        name=name,
        service=top.child("metadata").text_map("labels").get(SERVICE_LABEL, ""),
        ports=tuple(
            SlicePort(
                number=port.optional_int("port"),
                name=port.text("name"),
                protocol=port.text("protocol") or "TCP",
            )
            for port in top.children("ports")
        ),
        endpoints=tuple(_decode_endpoint(item) for item in top.children("endpoints")),
    )


def _decode_endpoint(fields: Fields) -> Endpoint:
    target = fields.child("targetRef")
    is_pod = target.text("kind") == "Pod"
    return Endpoint(
        addresses=tuple(canonical(address) for address in fields.texts("addresses")),
        ready=fields.child("conditions").flag("ready", default=True),  # null means ready
        pod=target.text("name") if is_pod else "",
        pod_uid=target.text("uid") if is_pod else "",
    )


def decode_namespace(top: Fields) -> Namespace:
    """A v1 Namespace."""
    metadata = top.child("metadata")
    return Namespace(metadata.required_text("name"), metadata.text_map("labels"))


def decode_lease(top: Fields) -> Lease:
    """A coordination.k8s.io/v1 Lease."""
    namespace, name = name_of(top)
    spec = top.child("spec")
    return Lease(namespace, name, spec.instant("renewTime"), spec.optional_int("leaseDurationSeconds"))


def decode_ingress(top: Fields) -> Ingress:
    """A networking.k8s.io/v1 Ingress."""
    namespace, name = name_of(top)
    spec = top.child("spec")
    backends = [spec.child("defaultBackend")]
    for rule in spec.children("rules"):
        backends += [path.child("backend") for path in rule.child("http").children("paths")]
    balancers = list(top.child("status").child("loadBalancer").children("ingress"))
    return Ingress(
        namespace=namespace,
        name=name,
        backends=tuple(
            _ingress_backend(service) for item in backends if (service := item.optional_child("service"))
        ),
        ips=tuple(canonical(ip) for item in balancers if (ip := item.text("ip"))),
        hostnames=tuple(host for item in balancers if (host := item.text("hostname"))),
    )


def _ingress_backend(service: Fields) -> Backend:
    port = service.child("port")
    return Backend(service.text("name"), port.count("number") or port.text("name") or 0)


def decode_http_route(top: Fields) -> HttpRoute:
    """A gateway.networking.k8s.io HTTPRoute."""
    namespace, name = name_of(top)
    backends = [
        Backend(ref.text("name"), ref.count("port"), ref.text("namespace") or namespace)
        for rule in top.child("spec").children("rules")
        for ref in rule.children("backendRefs")
        if (ref.text("kind") or "Service") == "Service"
    ]
    return HttpRoute(namespace, name, tuple(backends))


def decode_config_map(top: Fields) -> ConfigMap:
    """A v1 ConfigMap; its binary data is not read."""
    namespace, name = name_of(top)
    return ConfigMap(namespace, name, top.text_map("data"))


def decode_secret(top: Fields) -> Secret:
    """A v1 Secret's name."""
    return Secret(*name_of(top))


def decode_monitor(top: Fields) -> Monitor:
    """A monitoring.coreos.com/v1 ServiceMonitor or PodMonitor; authentication is never read."""
    namespace, name = name_of(top)
    kind, spec = top.text("kind"), top.child("spec")
    list_name, port_name = (
        ("endpoints", "targetPort") if kind == "ServiceMonitor" else ("podMetricsEndpoints", "targetPort")
    )
    port, path = None, "/metrics"
    for endpoint in spec.children(list_name):
        for field in ("port", port_name):
            value = endpoint.raw(field)
            if port is None and isinstance(value, int) and not isinstance(value, bool):
                port, path = value, endpoint.text("path") or "/metrics"
    labels = spec.child("selector").raw("matchLabels")
    return Monitor(kind, namespace, name, labels if isinstance(labels, dict) else None, port, path)
