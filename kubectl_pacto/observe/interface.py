# SPDX-License-Identifier: MIT
"""Is a declared interface there? What the Kubernetes API says, merged with what the kernel says."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_pacto.model.evidence import Collector
from kubectl_pacto.model.kube import EndpointSlice, Service, ServicePort, Unreadable
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.backing import (
    Backing,
    BackingPod,
    describe_unready,
    find_backing,
    port_slices,
    ready_endpoints,
)
from kubectl_pacto.observe.coverage import Coverage, Level, cover, in_mesh, unproven, worst, young
from kubectl_pacto.observe.reading import Answer, Reading
from kubectl_pacto.observe.words import count, several

PROBE_ANSWERED = "ProbeAnswered"


@dataclass(frozen=True, slots=True)
class BoundPort:
    """The Service port that an interface is bound to, with the Service's slices."""

    service: Service
    port: ServicePort
    slices: tuple[EndpointSlice, ...]


def bound_port(snapshot: Snapshot, interface: str) -> BoundPort | Reading | None:
    """The port an interface is bound to; a Reading that ends the matter; None without a Service."""
    pacto, cluster = snapshot.pacto, snapshot.cluster
    wanted = pacto.port_bindings.get(interface)
    if wanted is None:
        return Reading(Answer.UNSUPPORTED, "no interfaceBinding names its Service port")
    if not pacto.service:
        return Reading(Answer.UNSUPPORTED, "the target has no serviceName")
    service = cluster.service(pacto.namespace, pacto.service)
    if service is None:
        return None
    if isinstance(service, Unreadable):
        return Reading(Answer.FAILED, f"cannot read Service {pacto.service}: {service.why}")
    if service.type == "ExternalName":
        return Reading(Answer.INSUFFICIENT, f"Service {service.name} is an ExternalName")
    if not service.selector:
        return Reading(Answer.INSUFFICIENT, f"Service {service.name} selects no pods")
    port = service.port(wanted)
    if port is None:
        return Reading(Answer.INSUFFICIENT, f"Service {service.name} has no port {wanted}")
    slices = cluster.slices_of(pacto.namespace, pacto.service)
    if isinstance(slices, Unreadable):
        return Reading(Answer.FAILED, f"cannot read EndpointSlices of {service.name}: {slices.why}")
    return BoundPort(service, port, slices)


def read_interface(snapshot: Snapshot, interface: str) -> Reading | None:
    """What is known of an interface, before the window; None when there is nothing to observe."""
    if interface not in snapshot.pacto.port_bindings and snapshot.options.match_interfaces_by_name:
        return _read_by_name(snapshot, interface)
    bound = bound_port(snapshot, interface)
    if not isinstance(bound, BoundPort):
        return bound
    slices = [item for item, _ in port_slices(bound.slices, bound.port)]
    ready = len(ready_endpoints(slices))
    what = f"port {bound.port.name or bound.port.number} of Service {bound.service.name}"
    if not ready:
        return Reading(Answer.NO, f"{what} has {describe_unready(slices)}")
    if bound.port.protocol != "TCP" or not snapshot.options.kernel.enabled:
        return Reading(Answer.YES, f"{what} has {count(ready, 'ready endpoint')}")
    return merge_interface(snapshot, bound, what)


def _read_by_name(snapshot: Snapshot, interface: str) -> Reading:
    """An unbound interface whose Service has a port of its name; never absent by it."""
    pacto, cluster = snapshot.pacto, snapshot.cluster
    service = cluster.service(pacto.namespace, pacto.service)
    slices = cluster.slices_of(pacto.namespace, pacto.service)
    if isinstance(service, Service) and not isinstance(slices, Unreadable):
        port = service.port(interface)
        if port and ready_endpoints(item for item, _ in port_slices(slices, port)):
            return Reading(Answer.YES, f"port {interface} of Service {service.name} has a ready endpoint")
    return Reading(Answer.UNSUPPORTED, "no interfaceBinding, and no ready Service port of its name")


def merge_interface(snapshot: Snapshot, bound: BoundPort, what: str) -> Reading:
    """A port with ready endpoints, as the kernel sees it."""
    failed = snapshot.cluster.failure("Pod", snapshot.pacto.namespace)
    if failed:
        return Reading(Answer.FAILED, f"cannot read pods: {failed.why}")
    backing = find_backing(snapshot, bound.service, bound.port, bound.slices)
    if backing.nil_port:
        return Reading(Answer.INSUFFICIENT, f"an EndpointSlice gives {what} no number")
    covered = [cover(snapshot, item.pod) for item in backing.pods]
    doubtful = [item for item in covered if item.level is not Level.COMPLETE]
    doubt = worst(doubtful)
    if doubt is not None:
        soon = young(doubtful, snapshot.at)
        return Reading(doubt.level.answer, doubt.describe(), Collector.API_AND_KERNEL, young=soon)
    for item, coverage in zip(backing.pods, covered, strict=True):
        if coverage.view and any(item.is_served_by(listener) for listener in coverage.view.listeners):
            why = f"pod {item.pod.name} listens on the target port of {what}"
            return Reading(Answer.YES, why, Collector.API_AND_KERNEL)
    silent = _describe_silence(backing, covered, what)
    unexplained = _unexplained(snapshot, backing, covered)
    if unexplained:
        why = f"{silent}; that proves nothing: {unexplained}"
        return Reading(Answer.INSUFFICIENT, why, Collector.API_AND_KERNEL)
    waiting = unproven(snapshot, covered)
    if waiting:
        return Reading(Answer.STALE, waiting, Collector.API_AND_KERNEL)
    return negative(silent, covered)


def _unexplained(snapshot: Snapshot, backing: Backing, covered: list[Coverage]) -> str:
    """Why that no backing pod listens proves nothing; empty if it does."""
    if backing.without_pod:
        return f"ready endpoint {backing.without_pod} has no running pod"
    if backing.stand_in:
        return "no endpoint names a pod: the workload's pods can confirm the interface, not contradict it"
    for item, coverage in zip(backing.pods, covered, strict=True):
        if any(item.may_be_served_by(one) for one in (coverage.view.listeners if coverage.view else ())):
            return f"pod {item.pod.name} listens on this port at what is no IP address"
        if not item.pod.ready:
            return f"pod {item.pod.name} is not Ready, though its endpoint is"
        if in_mesh(snapshot, item.pod):
            return f"pod {item.pod.name} is in a mesh, whose proxy accepts its connections in its place"
        if _is_probed(item):
            return (
                f"{PROBE_ANSWERED}: pod {item.pod.name} is Ready by a probe of this very port, which "
                "somebody answered"
            )
    return ""


def _is_probed(item: BackingPod) -> bool:
    for container in (*item.pod.containers, *item.pod.init_containers):
        probe = container.readiness
        if probe and probe.handler in ("httpGet", "tcpSocket", "grpc") and not probe.host:
            number = container.port_number(probe.port)
            if number in item.ports:
                return True
    return False


def _describe_silence(backing: Backing, covered: list[Coverage], what: str) -> str:
    """That no backing pod listens where it should, and where the first ones listen instead."""
    ports = sorted({port for item in backing.pods for port in item.ports})
    where = f"on port {', '.join(map(str, ports))}" if ports else "there"
    pods = [_describe_listeners(*pair) for pair in zip(backing.pods, covered, strict=True)]
    seen = f": {several(pods)}" if pods else ""
    return f"{what} has {count(backing.ready, 'ready endpoint')}, but no pod behind it listens {where}{seen}"


def _describe_listeners(item: BackingPod, coverage: Coverage) -> str:
    listeners = coverage.view.listeners if coverage.view else ()
    there = sorted({one.address for one in listeners if one.port in item.ports})
    if there:
        return f"{coverage.where} only at {several(there)}"
    others = sorted({one.port for one in listeners})
    if others:
        return f"{coverage.where} only on port {several([str(port) for port in others])}"
    return f"{coverage.where} on no port at all"


def negative(why: str, covered: list[Coverage], *, success_at: float | None = None) -> Reading:
    """A negative that rests on these views; `success_at` is the last success that speaks against it."""
    starts = [start for item in covered if (start := item.latest_start) is not None]
    if success_at is not None:
        starts.append(success_at)
    beats = [item.heartbeat.seen_at for item in covered if item.heartbeat]
    return Reading(
        Answer.NO,
        why,
        Collector.API_AND_KERNEL,
        restarted_at=max(starts, default=None),
        vouched_at=min(beats, default=None),
    )
