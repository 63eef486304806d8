# SPDX-License-Identifier: MIT
"""Is a declared dependency reachable? The Kubernetes answer, merged with the pods' connections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kubectl_pacto.model.evidence import Collector
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.kube import EndpointSlice, Service, Unreadable
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.addresses import (
    ServiceAddress,
    cluster_addresses,
    endpoint_addresses,
    outer_addresses,
)
from kubectl_pacto.observe.backing import describe_unready, ready_endpoints
from kubectl_pacto.observe.coverage import Coverage, Level, unproven, worst, young
from kubectl_pacto.observe.interface import negative
from kubectl_pacto.observe.peers import Callers, Contact
from kubectl_pacto.observe.pods import target_workload
from kubectl_pacto.observe.reading import Answer, Reading
from kubectl_pacto.observe.resolve import Resolution
from kubectl_pacto.observe.words import count

# the agent's words for a failure that need more of them
_FAILURES: Final = {"pending": "pending: no answer yet", "timeout": "timeout: no answer", "other": ""}


@dataclass(frozen=True, slots=True)
class Provider:
    """A resolved provider's Service and slices, where they could be read."""

    service: Service | None
    slices: tuple[EndpointSlice, ...] = ()

    def addresses(self, snapshot: Snapshot) -> list[ServiceAddress]:
        """Where connections count as to this provider."""
        if self.service is None:
            return []
        inner = endpoint_addresses(snapshot, self.service.namespace, self.slices)
        return cluster_addresses(self.service) + inner


def read_provider(snapshot: Snapshot, pacto: Pacto) -> tuple[Provider, Reading]:
    """A provider's objects, and whether the Kubernetes API alone calls it reachable."""
    cluster, where = snapshot.cluster, f"Service {pacto.namespace}/{pacto.service}"
    service = cluster.service(pacto.namespace, pacto.service)
    if isinstance(service, Unreadable):
        return Provider(None), Reading(Answer.FAILED, f"cannot read {where}: {service.why}")
    if service is None:
        return Provider(None), Reading(Answer.NO, f"{where} does not exist")
    if service.type == "ExternalName":
        return Provider(service), Reading(Answer.UNSUPPORTED, f"{where} is an ExternalName")
    slices = cluster.slices_of(pacto.namespace, pacto.service)
    if isinstance(slices, Unreadable):
        why = f"cannot read EndpointSlices of {where}: {slices.why}"
        return Provider(service), Reading(Answer.FAILED, why)
    ready = len(ready_endpoints(slices))
    answer = Answer.YES if ready else Answer.NO
    why = f"{where} has {count(ready, 'ready endpoint') if ready else describe_unready(slices)}"
    return Provider(service, slices), Reading(answer, why)


def read_dependency(snapshot: Snapshot, resolution: Resolution, callers: Callers) -> Reading:
    """What is known of a dependency, before the window."""
    if resolution.provider is None:
        return resolution.reading
    if resolution.reading.answer is Answer.YES:
        provider, api = read_provider(snapshot, resolution.provider)
    else:
        provider, api = Provider(None), resolution.reading
    if api.answer is Answer.UNSUPPORTED or not snapshot.options.kernel.enabled:
        return api
    return merge_dependency(snapshot, provider, api, callers)


def merge_dependency(snapshot: Snapshot, provider: Provider, api: Reading, callers: Callers) -> Reading:
    """The Kubernetes answer as the workload's connections qualify it; the first rule that fits wins."""
    contacts = callers.contacts(provider.addresses(snapshot))
    reached = next((item for item in contacts if item.has_recent_success), None)
    healthy = next((item for item in contacts if item.is_healthy), None)
    failing = [item for item in contacts if item.is_failing and item.address.is_traced]
    if api.answer is Answer.NO:
        if reached is None:
            return api
        # the kernel never overrides a Kubernetes negative
        why = f"{api.why}, yet {_describe_success(reached)}"
        return Reading(Answer.INSUFFICIENT, why, Collector.API_AND_KERNEL)
    if api.answer is Answer.YES and healthy is not None:
        return Reading(Answer.YES, describe_contact(healthy), Collector.API_AND_KERNEL)
    if api.answer is Answer.YES and failing and reached is None:
        return _failing(snapshot, provider, contacts, failing, callers)
    if api.answer in (Answer.FAILED, Answer.INSUFFICIENT):
        blind = [item for item in callers.covered if item.level >= Level.FAILED]
        if blind:
            doubt = max(blind, key=lambda item: item.level)
            why = f"{api.why}; {doubt.describe()}"
            return Reading(doubt.level.answer, why, Collector.API_AND_KERNEL)
    unread = "" if callers.covered else _without_callers(snapshot)
    return replace(api, why=f"{api.why}; {unread}") if api.answer is Answer.YES and unread else api


def _without_callers(snapshot: Snapshot) -> str:
    """Why no pod's connections could qualify the Kubernetes answer, where that is a mistake perhaps."""
    pacto, workload = snapshot.pacto, target_workload(snapshot)
    where = f"{pacto.workload_kind} {pacto.namespace}/{pacto.workload_name}"
    if not pacto.workload_name:
        return ""
    if workload is None:
        return f"no connection is read, as there is no {where}"
    if isinstance(workload, Unreadable) or snapshot.cluster.failure("Pod", pacto.namespace):
        return f"no connection is read, as {where} or its pods could not be"
    return f"no connection is read, as {where} has no running pod"


def _failing(
    snapshot: Snapshot,
    provider: Provider,
    contacts: list[Contact],
    failing: list[Contact],
    callers: Callers,
) -> Reading:
    """Connections only fail: unreachable, if nothing leaves room for doubt."""
    kernel = Collector.API_AND_KERNEL
    unread = snapshot.cluster.failure("Pod", snapshot.pacto.namespace)
    if unread:
        return Reading(Answer.FAILED, f"cannot read all pods of the workload: {unread.why}", kernel)
    doubtful = callers.doubtful()
    doubt = worst(doubtful)
    if doubt is not None:
        why = f"{describe_contact(failing[0])}, but {_doubt(doubt)}"
        return Reading(doubt.level.answer, why, kernel, young=young(doubtful, snapshot.at))
    room = _room_for_doubt(snapshot, provider, contacts, callers)
    if room:
        return Reading(Answer.INSUFFICIENT, f"{describe_contact(failing[0])}, but {room}", kernel)
    waiting = unproven(snapshot, list(callers.covered))
    if waiting:
        return Reading(Answer.STALE, waiting, kernel)
    latest = max(failing, key=lambda item: item.last_failure or 0.0)
    successes = [item.last_success for item in contacts if item.last_success is not None]
    return negative(
        f"every recent connection {_to(provider)}failed: {describe_contact(latest)}",
        list(callers.covered),
        success_at=max(successes, default=None),
    )


def _doubt(doubt: Coverage) -> str:
    if doubt.level is Level.COMPLETE:
        return f"pod {doubt.pod.name} is in a mesh, whose connections are not read"
    return doubt.describe()


def _room_for_doubt(snapshot: Snapshot, provider: Provider, contacts: list[Contact], callers: Callers) -> str:
    held = next((item for item in contacts if item.is_open), None)
    if held is not None:
        return f"a connection to {_place(held)} is open"
    if provider.service is not None:
        for item in callers.contacts(outer_addresses(provider.service)):
            if item.has_recent_success:
                return f"{_describe_success(item)}, an address of the Service from outside"
    for coverage in callers.covered:
        if coverage.node is None:
            continue
        since = coverage.node.collection.connections_since
        node = f"node {coverage.pod.node}"
        if since is None:
            return f"{node} does not say since when it has seen every connection"
        since += coverage.offset
        if snapshot.at - since < coverage.recency:
            first = format_instant(since)
            return f"{node} has seen every connection only since {first}: {coverage.recency:g} s are needed"
    return ""


def _to(provider: Provider) -> str:
    service = provider.service
    return f"to Service {service.namespace}/{service.name} " if service else ""


def _place(contact: Contact) -> str:
    address, port = contact.address.address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def describe_contact(contact: Contact) -> str:
    """What a contact says, in one clause: its success, unless it failed since."""
    success, failure = contact.last_success, contact.last_failure
    if success is not None and (failure is None or success >= failure):
        return _describe_success(contact)
    if failure is not None:
        why = _FAILURES.get(contact.failure_reason, contact.failure_reason)
        reason = f" ({why})" if why else ""
        return f"{_who(contact)} failed to connect to {_place(contact)} at {format_instant(failure)}{reason}"
    return f"{_who(contact)} has a connection to {_place(contact)}"


def _describe_success(contact: Contact) -> str:
    when = f" at {format_instant(contact.last_success)}" if contact.last_success is not None else ""
    held = " and still is" if contact.is_open else ""
    return f"{_who(contact)} connected to {_place(contact)}{when}{held}"


def _who(contact: Contact) -> str:
    pods = sorted({item.where for item in contact.sources})
    return pods[0] + (f" and {len(pods) - 1} more" if len(pods) > 1 else "")
