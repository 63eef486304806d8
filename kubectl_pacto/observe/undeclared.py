# SPDX-License-Identifier: MIT
"""Which Pacto targets the workload's pods talk to that no declared dependency means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_pacto.model.evidence import Collector, Kind, Observation, Outcome
from kubectl_pacto.model.kube import Pod, Service, Unreadable
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.addresses import Address, outer_addresses
from kubectl_pacto.observe.dependency import Provider, describe_contact, read_provider
from kubectl_pacto.observe.peers import Callers, Contact
from kubectl_pacto.observe.resolve import Resolution, TargetKey, directory, target_key


def find_undeclared(
    snapshot: Snapshot, resolutions: Sequence[Resolution], callers: Callers
) -> list[Observation]:
    """One observation for each undeclared provider, by the name of its contract's service.

    None at all while a declared dependency resolves to no target: it could be the very service that a
    pod reached.
    """
    if not callers.attempts or any(item.is_unresolved for item in resolutions):
        return []
    if not snapshot.options.kernel.watch_alive:
        return []
    if snapshot.cluster.failure("Pod", snapshot.pacto.namespace):
        return []  # an address could be one of the workload's own pods, which were not all read
    excluded = _excluded(snapshot, resolutions, callers)
    found: dict[str, Observation] = {}
    for owners, contact in sorted(_reached(snapshot, callers, excluded), key=_order):
        published = owners[0].published
        if published is not None and published.service not in found:
            found[published.service] = _observe(snapshot, owners, contact)
    return [found[name] for name in sorted(found)]


def _order(item: tuple[Sequence[Pacto], Contact]) -> tuple[str, str, Address]:
    owners, contact = item
    return owners[0].namespace, owners[0].name, contact.address.address


def _observe(snapshot: Snapshot, owners: Sequence[Pacto], contact: Contact) -> Observation:
    pacto = owners[0]
    assert pacto.published is not None
    where = f"Service {pacto.namespace}/{pacto.service}"
    if len(owners) > 1:
        where += ", the target of Pactos " + ", ".join(f"{one.namespace}/{one.name}" for one in owners)
    return Observation(
        kind=Kind.UNDECLARED_PEER,
        subject=pacto.published.service,
        outcome=Outcome.OBSERVED,
        detected_at=snapshot.at,
        value={"namespace": pacto.namespace, "service": pacto.service},
        collector=Collector.KERNEL,
        why=f"{describe_contact(contact)}, an address of {where}",
    )


def _reached(
    snapshot: Snapshot, callers: Callers, excluded: set[Address]
) -> Iterable[tuple[Sequence[Pacto], Contact]]:
    """The targets that are talked to: the Pactos of each, by namespace and name, and a contact."""
    pactos = directory(snapshot.cluster)
    providers: dict[TargetKey, tuple[Sequence[Pacto], set[Address]]] = {}
    for address in callers.attempts:
        owners = pactos.by_address.get(address, [])
        # an address of several targets says of none that it was meant
        if address not in excluded and len({target_key(owner) for owner in owners}) == 1:
            key = target_key(owners[0])
            providers.setdefault(key, (owners, set()))[1].add(address)
    for sharing, addresses in providers.values():
        provider, _ = read_provider(snapshot, sharing[0])
        wanted = [item for item in provider.addresses(snapshot) if item.address in addresses]
        for contact in callers.contacts(wanted):
            if contact.address.is_traced and _is_proof(contact):
                yield sharing, contact


def _is_proof(contact: Contact) -> bool:
    """Whether pods talk there, as seen by nodes whose heartbeats are all known to move."""
    renewed = all(item.heartbeat is not None and item.heartbeat.renewed for item in contact.sources)
    return renewed and (contact.is_healthy or contact.is_open)


def _excluded(snapshot: Snapshot, resolutions: Sequence[Resolution], callers: Callers) -> set[Address]:
    """The addresses that are the target's own, or a declared provider's."""
    pods = [item.pod for item in callers.covered]
    own = {(ip, port) for ip, port in callers.attempts if any(ip in pod.ips for pod in pods)}
    for service in _services_of(snapshot, pods):
        own |= _addresses(snapshot, service)
    for resolution in resolutions:
        for pacto in resolution.candidates:
            if pacto.service:
                declared = snapshot.cluster.service(pacto.namespace, pacto.service)
                if isinstance(declared, Service):
                    own |= _addresses(snapshot, declared)
    return own


def _services_of(snapshot: Snapshot, pods: Iterable[Pod]) -> list[Service]:
    found = {
        (service.namespace, service.name): service
        for pod in pods
        for service in snapshot.cluster.services_selecting(pod)
    }
    own = snapshot.cluster.service(snapshot.pacto.namespace, snapshot.pacto.service)
    if isinstance(own, Service):
        found[own.namespace, own.name] = own
    return list(found.values())


def _addresses(snapshot: Snapshot, service: Service) -> set[Address]:
    slices = snapshot.cluster.slices_of(service.namespace, service.name)
    provider = Provider(service, () if isinstance(slices, Unreadable) else slices)
    return {item.address for item in (*provider.addresses(snapshot), *outer_addresses(service))}
