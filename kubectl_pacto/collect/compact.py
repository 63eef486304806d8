# SPDX-License-Identifier: MIT
"""What the operator keeps of each object, made small: equal parts once, unread ones not at all.

A Pod is left with what a check of a Pod reads; workloads keep everything, because a status tells of it.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from kubectl_pacto.model.kube import Container, EndpointSlice, OwnerRef, Pod, Selector, Service, Workload
from kubectl_pacto.model.pacto import Pacto

T = TypeVar("T")
MOST: Final = 32_768


class Pool:
    """Equal values once, among those of late: what has not been met again for a while is let go."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._young: dict[Hashable, Any] = {}
        self._old: dict[Hashable, Any] = {}

    def share(self, key: Hashable, value: T) -> T:
        """The value that was first given for an equal key."""
        found: T | None = self._young.get(key)
        if found is None:
            found = self._old.get(key, value)
            if len(self._young) >= self._most:
                self._old, self._young = self._young, {}
            self._young[key] = found
        return found

    def one(self, value: T) -> T:
        """The first value that was equal to this one, which has a hash."""
        return self.share(value, value)

    def labels(self, value: Mapping[str, str]) -> Mapping[str, str]:
        """A mapping of text to text."""
        return self.share(("labels", *value.items()), value)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


POOL: Final = Pool()


def compact_pod(pod: Pod) -> Pod:
    """A pod with what checks read of pods: of its containers no image, liveness probe or mount."""
    return replace(
        pod,
        namespace=sys.intern(pod.namespace),
        labels=POOL.labels(pod.labels),
        node=sys.intern(pod.node),
        phase=sys.intern(pod.phase),
        owner=_owner(pod.owner),
        containers=POOL.one(tuple(_of_pod(item) for item in pod.containers)),
        init_containers=POOL.one(tuple(_of_pod(item) for item in pod.init_containers)),
    )


def _of_pod(container: Container) -> Container:
    return Container(container.name, ports=container.ports, readiness=container.readiness)


def _owner(owner: OwnerRef | None) -> OwnerRef | None:
    return None if owner is None else POOL.one(owner)


def compact_workload(workload: Workload) -> Workload:
    """A workload; a ReplicaSet's template is its Deployment's, which is kept once."""
    return replace(
        workload,
        kind=sys.intern(workload.kind),
        namespace=sys.intern(workload.namespace),
        owner=_owner(workload.owner),
        selector=_selector(workload.selector),
        containers=POOL.one(workload.containers),
        init_containers=POOL.one(workload.init_containers),
        volumes=POOL.one(workload.volumes),
    )


def _selector(selector: Selector) -> Selector:
    return POOL.share(
        ("selector", *selector.labels.items(), selector.expressions),
        Selector(POOL.labels(selector.labels), selector.expressions),
    )


def compact_service(service: Service) -> Service:
    """A Service."""
    return replace(
        service,
        namespace=sys.intern(service.namespace),
        labels=POOL.labels(service.labels),
        annotations=POOL.labels(service.annotations),
        selector=_selector(service.selector),
        ports=POOL.one(service.ports),
    )


def compact_slice(item: EndpointSlice) -> EndpointSlice:
    """An EndpointSlice."""
    return replace(item, namespace=sys.intern(item.namespace), ports=POOL.one(item.ports))


class PackedStatus(Mapping[str, Any]):
    """A Pacto's status: thousands of small objects, read once per check; equal if what it says is equal."""

    __slots__ = ("_packed",)

    def __init__(self, status: Mapping[str, Any]) -> None:
        self._packed = marshal.dumps(dict(status))

    def whole(self) -> dict[str, Any]:
        """The status as it was."""
        found: dict[str, Any] = marshal.loads(self._packed)  # noqa: S302 -- packed above
        return found

    def __getitem__(self, key: str) -> Any:
        return self.whole()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole())

    def __len__(self) -> int:
        return len(self.whole())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedStatus) and self._packed == other._packed:
            return True
        return isinstance(other, Mapping) and self.whole() == dict(other)

    __hash__ = None  # type: ignore[assignment]  # as of any mapping


def compact_pacto(pacto: Pacto) -> Pacto:
    """A Pacto with its status packed, and its contract once, however often the API repeats it."""
    return replace(
        pacto,
        namespace=sys.intern(pacto.namespace),
        inline=sys.intern(pacto.inline),
        status=PackedStatus(pacto.status) if pacto.status else pacto.status,
    )


def unpacked(pacto: Pacto) -> Pacto:
    """A Pacto with its status as it was, for the one check that reads it."""
    status = pacto.status
    return replace(pacto, status=status.whole()) if isinstance(status, PackedStatus) else pacto
