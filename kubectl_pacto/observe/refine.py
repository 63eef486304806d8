# SPDX-License-Identifier: MIT
"""The facts behind the refinements of an interface or a dependency that was observed."""

from __future__ import annotations

from kubectl_pacto.model.contract import Dependency, Interface, InterfaceType
from kubectl_pacto.model.evidence import Kind, Observation, Outcome
from kubectl_pacto.model.kube import Service, ServicePort, Unreadable
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.probe import Protocol
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.exposure import Exposure, find_exposure


def _port_of(snapshot: Snapshot, interface: str) -> tuple[Service, ServicePort] | None:
    """The Service and port an interface is bound to (or named like, where names may bind)."""
    pacto = snapshot.pacto
    service = snapshot.cluster.service(pacto.namespace, pacto.service)
    if service is None or isinstance(service, Unreadable):
        return None
    port = service.port(pacto.port_bindings.get(interface, interface))
    return None if port is None else (service, port)


def _unknown(snapshot: Snapshot, kind: Kind, subject: str, why: str) -> list[Observation]:
    return [Observation(kind, subject, Outcome.INSUFFICIENT, snapshot.at, why=why)]


def observe_protocol(snapshot: Snapshot, interface: Interface) -> list[Observation]:
    """What the port of an interface answered, if it was probed and answered."""
    if interface.type is InterfaceType.ASYNCAPI:
        return []
    found, probes, kind = _port_of(snapshot, interface.name), snapshot.cluster.probes, Kind.INTERFACE_PROTOCOL
    if not probes.enabled:
        return _unknown(snapshot, kind, interface.name, "probing is off")
    if found is None:
        return _unknown(snapshot, kind, interface.name, "no Service port to probe")
    service, port = found
    answer = probes.protocols.get((service.namespace, service.name, port.number))
    if answer is None:
        return _unknown(snapshot, kind, interface.name, f"port {port.number} was not probed")
    if answer is Protocol.NONE:
        return _unknown(snapshot, kind, interface.name, f"port {port.number} gave no (or no one) answer")
    why = f"port {port.number} of Service {service.name} answered as {answer.value}"
    value = {"protocol": answer.value}
    return [Observation(kind, interface.name, Outcome.OBSERVED, snapshot.at, value, why=why)]


def observe_exposure(snapshot: Snapshot, interface: Interface) -> list[Observation]:
    """How far the port of an interface is exposed, if that can be told."""
    found, kind = _port_of(snapshot, interface.name), Kind.INTERFACE_EXPOSURE
    if found is None:
        return _unknown(snapshot, kind, interface.name, "no Service port to judge")
    exposure, why = find_exposure(snapshot, *found)
    if exposure is Exposure.UNKNOWN:
        return _unknown(snapshot, kind, interface.name, why)
    value = {"exposure": exposure.value}
    return [Observation(kind, interface.name, Outcome.OBSERVED, snapshot.at, value, why=why)]


def observe_version(snapshot: Snapshot, dependency: Dependency, provider: Pacto) -> list[Observation]:
    """The version that a dependency's provider publishes."""
    kind = Kind.DEPENDENCY_VERSION
    version = provider.published.version if provider.published else ""
    if not version:
        return _unknown(snapshot, kind, dependency.name, "the provider's status has no contract version")
    why = f"Pacto {provider.namespace}/{provider.name} runs version {version}"
    value = {"version": version}
    return [Observation(kind, dependency.name, Outcome.OBSERVED, snapshot.at, value, why=why)]
