# SPDX-License-Identifier: MIT
"""Which Pacto target a declared dependency is: by ref, else by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.contract import Dependency
from kubectl_pacto.model.kube import Service, Unreadable
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.ranges import in_range
from kubectl_pacto.observe.addresses import Address, cluster_addresses
from kubectl_pacto.observe.reading import Answer, Reading
from kubectl_pacto.observe.words import several

TargetKey = tuple[str, str]


def base_ref(ref: str) -> str:
    """A ref without scheme, tag and digest; case and a registry's port are kept."""
    bare = ref.removeprefix("oci://").partition("@")[0]
    head, slash, tail = bare.rpartition("/")
    return head + slash + tail.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a dependency resolves to.

    `provider` is the one target chosen; `candidates` every target it could be, which all count as
    declared; `reading` says why there is no provider (and then is the dependency's result).
    """

    provider: Pacto | None
    candidates: tuple[Pacto, ...]
    reading: Reading

    @property
    def is_unresolved(self) -> bool:
        """Whether no Pacto target at all is what the dependency means."""
        return not self.candidates


class Directory:
    """The Pactos of a cluster by what they publish and by where they answer."""

    def __init__(self, cluster: Cluster) -> None:
        self.by_ref: defaultdict[str, list[Pacto]] = defaultdict(list)
        self.by_name: defaultdict[str, list[Pacto]] = defaultdict(list)
        self.without_target: defaultdict[str, list[Pacto]] = defaultdict(list)
        self.by_address: defaultdict[Address, list[Pacto]] = defaultdict(list)
        for pacto in sorted(cluster.pactos, key=lambda item: (item.namespace, item.name)):
            published = pacto.published
            if published is None:
                continue
            if published.resolved_ref:
                self.by_ref[base_ref(published.resolved_ref)].append(pacto)
            if published.service and pacto.is_reference:
                self.without_target[published.service].append(pacto)
            elif published.service:
                self.by_name[published.service].append(pacto)
                for address in _addresses_of(cluster, pacto):
                    self.by_address[address].append(pacto)


def _addresses_of(cluster: Cluster, pacto: Pacto) -> set[Address]:
    if not pacto.service:
        return set()
    service = cluster.service(pacto.namespace, pacto.service)
    slices = cluster.slices_of(pacto.namespace, pacto.service)
    found: set[Address] = set()
    if isinstance(service, Service):
        found.update(item.address for item in cluster_addresses(service))
    if not isinstance(slices, Unreadable):
        for item in slices:
            for port in item.ports:
                if port.number and port.protocol == "TCP":
                    found.update((ip, port.number) for end in item.endpoints for ip in end.addresses)
    return found


_DIRECTORIES: WeakKeyDictionary[Cluster, Directory] = WeakKeyDictionary()


def directory(cluster: Cluster) -> Directory:
    """The directory of a cluster, made once: ten thousand checks share it."""
    whole = cluster.whole
    found = _DIRECTORIES.get(whole)
    if found is None:
        found = _DIRECTORIES[whole] = Directory(whole)
    return found


def resolve(cluster: Cluster, dependency: Dependency) -> Resolution:
    """What a declared dependency resolves to."""
    failed = cluster.failure("Pacto")
    if failed:
        return Resolution(None, (), Reading(Answer.FAILED, f"cannot list Pactos: {failed.why}"))
    pactos = directory(cluster)
    carriers = pactos.by_ref.get(base_ref(dependency.ref), [])
    how = f"carry the ref {base_ref(dependency.ref)}"
    targets = [pacto for pacto in carriers if not pacto.is_reference]
    if carriers and not targets:
        why = f"only reference-only Pactos {how}: {_names(carriers)}"
        return Resolution(None, (), Reading(Answer.INSUFFICIENT, why))
    if not carriers:
        targets = pactos.by_name.get(dependency.name, [])
        how = f"are called {dependency.name}"
    if not targets:
        why = _nobody(dependency, pactos.without_target.get(dependency.name, []))
        return Resolution(None, (), Reading(Answer.UNSUPPORTED, why))
    return _choose(dependency, targets, how)


def _nobody(dependency: Dependency, without_target: list[Pacto]) -> str:
    why = f"no Pacto carries the ref {base_ref(dependency.ref)}"
    if without_target:
        return f"{why}, and who publishes service {dependency.name} has no target: {_names(without_target)}"
    return f"{why} or publishes service {dependency.name}"


def _choose(dependency: Dependency, targets: list[Pacto], how: str) -> Resolution:
    candidates = tuple(targets)
    if len(_keys(targets)) > 1:
        targets = [pacto for pacto in targets if _is_inside(pacto, dependency.compatibility)]
    if len(_keys(targets)) != 1:
        inside = f"{len(_keys(targets))} of them have" if targets else "none of them has"
        why = (
            f"{len(_keys(candidates))} targets {how} and {inside} a version inside "
            f"{dependency.compatibility}, where one must: {_names(candidates)}"
        )
        return Resolution(None, candidates, Reading(Answer.INSUFFICIENT, why))
    provider = targets[0]
    if not provider.service:
        why = f"Pacto {provider.namespace}/{provider.name} has no serviceName"
        return Resolution(provider, candidates, Reading(Answer.INSUFFICIENT, why))
    return Resolution(provider, candidates, Reading(Answer.YES, ""))


def _is_inside(pacto: Pacto, compatibility: str) -> bool:
    return pacto.published is not None and in_range(pacto.published.version, compatibility) is True


def _keys(pactos: Sequence[Pacto]) -> set[TargetKey]:
    return {target_key(pacto) for pacto in pactos}


def target_key(pacto: Pacto) -> TargetKey:
    """What makes two Pactos one target: namespace and Service, else the workload."""
    workload = f"{pacto.workload_kind}/{pacto.workload_name}"
    return pacto.namespace, pacto.service or workload


def _names(pactos: Sequence[Pacto]) -> str:
    return several([f"{pacto.namespace}/{pacto.name}" for pacto in pactos])
