# SPDX-License-Identifier: MIT
"""Does a service answer its health and metrics endpoints? From probes, else from its own probes.

A window survives every answer here but a positive one: these are looks of our own at one path, and
one that got nothing says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.contract import Capability
from kubectl_pacto.model.evidence import Collector
from kubectl_pacto.model.kube import Container, Monitor, Service, ServicePort, Unreadable, Workload
from kubectl_pacto.model.probe import HttpAnswer
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.backing import port_slices, ready_endpoints
from kubectl_pacto.observe.pods import target_workload
from kubectl_pacto.observe.reading import Answer, Reading

METRICS_TYPES = ("text/plain", "application/openmetrics-text")
METRICS_PORTS = ("metrics", "http-metrics")


@dataclass(frozen=True, slots=True)
class CapabilityReading:
    """A reading, whether an open window survives it, and the collector with its method if it has one."""

    reading: Reading
    keeps_window: bool = True
    collector: str = Collector.API


def _say(answer: Answer, why: str) -> CapabilityReading:
    return CapabilityReading(Reading(answer, why), keeps_window=answer not in (Answer.YES, Answer.NO))


def _bound(snapshot: Snapshot, item: Capability) -> tuple[Service, ServicePort] | CapabilityReading:
    """The Service port that a capability's interface is bound to."""
    pacto = snapshot.pacto
    if item.binding is None:
        return _say(Answer.UNSUPPORTED, "the contract gives no binding")
    if item.binding.type != "http":
        return _say(Answer.UNSUPPORTED, f"a binding of type {item.binding.type} cannot be probed")
    wanted = pacto.port_bindings.get(item.binding.interface)
    if wanted is None:
        return _say(Answer.UNSUPPORTED, f"no interfaceBinding for interface {item.binding.interface}")
    service = snapshot.cluster.service(pacto.namespace, pacto.service)
    if isinstance(service, Unreadable):
        return _say(Answer.FAILED, f"cannot read Service {pacto.service}: {service.why}")
    port = service.port(wanted) if service else None
    if service is None or port is None:
        return _say(Answer.UNSUPPORTED, f"Service {pacto.service} has no port {wanted}")
    return service, port


def _path(item: Capability) -> str:
    path = item.binding.path if item.binding else ""
    return path if path.startswith("/") else f"/{path}"


def _answer(snapshot: Snapshot, service: Service, port: int, path: str) -> HttpAnswer | None:
    return snapshot.cluster.probes.http.get(((service.namespace, service.name, port), path))


def read_health(snapshot: Snapshot, item: Capability) -> CapabilityReading:
    """Whether a health endpoint answers: probed, else as the kubelet probes it."""
    bound = _bound(snapshot, item)
    if isinstance(bound, CapabilityReading):
        return bound
    service, port = bound
    path = _path(item)
    answer = _answer(snapshot, service, port.number, path) if snapshot.cluster.probes.enabled else None
    if answer is None or answer.code is None:
        return _passive_health(snapshot, service, port)
    what = f"GET {path} on port {port.number} of Service {service.name} answered {answer.code}"
    if 200 <= answer.code <= 399:
        return _say(Answer.YES, what)
    return _say(Answer.NO if answer.code == 404 else Answer.INSUFFICIENT, what)


def _passive_health(snapshot: Snapshot, service: Service, port: ServicePort) -> CapabilityReading:
    """Can confirm, never contradict."""
    workload = target_workload(snapshot)
    containers = workload.containers if isinstance(workload, Workload) else ()
    number = _target_number(containers, port)
    owner = next(
        (item for item in containers if number and any(number == declared for _, declared in item.ports)),
        None,
    )
    if owner is None:
        return _say(Answer.INSUFFICIENT, f"no container declares the target of port {port.number}")
    if owner.readiness is None or owner.readiness.handler != "httpGet":
        return _say(Answer.INSUFFICIENT, f"container {owner.name} has no httpGet readiness probe")
    slices = snapshot.cluster.slices_of(service.namespace, service.name)
    if isinstance(slices, Unreadable):
        return _say(Answer.FAILED, f"cannot read EndpointSlices of {service.name}: {slices.why}")
    if ready_endpoints(found for found, _ in port_slices(slices, port)):
        return _say(Answer.YES, f"the readiness probe of container {owner.name} passes")
    return _say(Answer.FAILED, f"no endpoint passes the readiness probe of container {owner.name}")


def _target_number(containers: tuple[Container, ...], port: ServicePort) -> int | None:
    target = port.target or port.number
    if isinstance(target, int):
        return target
    numbers = (number for item in containers for name, number in item.ports if name == target)
    return next(numbers, None)


def read_metrics(snapshot: Snapshot, item: Capability) -> CapabilityReading:
    """Whether a metrics endpoint answers with metrics; there is no negative for it."""
    if not snapshot.options.observe_metrics:
        return _say(Answer.UNSUPPORTED, "observing metrics is off")
    bound = _bound(snapshot, item)
    if isinstance(bound, CapabilityReading):
        return bound
    service, port = bound
    found = find_metrics(snapshot.cluster, service, port, item.binding.path if item.binding else "")
    if found is None:
        return _say(Answer.UNSUPPORTED, "nothing says where its metrics are")
    method, number, path = found
    answer = _answer(snapshot, service, number, path)
    what = f"GET {path} on port {number} of Service {service.name}"
    if answer is None or answer.code is None:
        return _say(Answer.FAILED, f"{what} was not answered")
    if answer.code != 200:
        return _say(Answer.INSUFFICIENT, f"{what} answered {answer.code}")
    if not has_metrics(answer):
        return _say(Answer.INSUFFICIENT, f"{what} answered without a metric")
    reading = Reading(Answer.YES, f"{what} answered with metrics")
    return CapabilityReading(reading, keeps_window=False, collector=f"{Collector.API}/metrics:{method}")


def has_metrics(answer: HttpAnswer) -> bool:
    """Whether an answer is Prometheus text with at least one whole sample."""
    if answer.content_type.partition(";")[0].strip().lower() not in METRICS_TYPES:
        return False
    lines = answer.body[:4096].split("\n")[:-1]  # a line that was cut is none
    return any(_is_sample(line.strip()) for line in lines)


def _is_sample(line: str) -> bool:
    if not line or line.startswith("#"):
        return False
    name, _, rest = line.partition("{")
    value = rest.rpartition("}")[2].split() if rest else line.split()[1:]
    try:
        return bool(name[0].isalpha() or name[0] in "_:") and bool(value) and float(value[0]) is not None
    except ValueError:
        return False


def find_metrics(
    cluster: Cluster, service: Service, port: ServicePort, declared: str
) -> tuple[str, int, str] | None:
    """How metrics were found (method), and their port and path; the first that is known wins."""
    for kind, method, labels in (
        ("ServiceMonitor", "servicemonitor", service.labels),
        ("PodMonitor", "podmonitor", service.selector.labels),
    ):
        for monitor in cluster.monitors_in(service.namespace):
            if monitor.kind == kind and monitor.port and _selects(monitor, labels):
                return method, _own_port(service, monitor.port), monitor.path
    notes = service.annotations
    number = notes.get("prometheus.io/port", "")
    if notes.get("prometheus.io/scrape") == "true" and number.isdecimal() and 0 < int(number) < 65536:
        path = notes.get("prometheus.io/path") or "/metrics"
        return "annotation", _own_port(service, int(number)), path
    for candidate in service.ports:
        if candidate.name in METRICS_PORTS:
            return "named-port", candidate.number, declared or "/metrics"
    return ("probe", port.number, declared) if declared else None


def _own_port(service: Service, number: int) -> int:
    """The Service port that leads to a number, which may be meant as a pod's; else the number as it is."""
    if any(port.number == number for port in service.ports):
        return number
    return next((port.number for port in service.ports if port.target == number), number)


def _selects(monitor: Monitor, labels: object) -> bool:
    if monitor.labels is None or not isinstance(labels, dict):
        return False
    return all(isinstance(value, str) and labels.get(key) == value for key, value in monitor.labels.items())
