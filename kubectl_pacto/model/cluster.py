# SPDX-License-Identifier: MIT
"""The objects of a cluster (or the part of it that was read), indexed once for many checks.

Plain data: built by `collect` from files or an API, then only read. A lookup answers with the
object, with None when the object does not exist, or with Unreadable when that is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

from kubectl_pacto.model.kube import (
    ConfigMap,
    EndpointSlice,
    HttpRoute,
    Ingress,
    Lease,
    Monitor,
    Namespace,
    Pod,
    Secret,
    Selector,
    Service,
    Unreadable,
    Workload,
)
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.probe import Probes

ANY: Final = ""
Name = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Everything read. `failures` maps (kind, namespace, name) to why a read failed.

    An empty name stands for a failed list, an empty namespace too for one of all namespaces.
    """

    pactos: tuple[Pacto, ...] = ()
    pods: tuple[Pod, ...] = ()
    services: tuple[Service, ...] = ()
    slices: tuple[EndpointSlice, ...] = ()
    workloads: tuple[Workload, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    leases: tuple[Lease, ...] = ()
    nodes: tuple[NodeRuntimeObservation, ...] = ()
    ingresses: tuple[Ingress, ...] = ()
    routes: tuple[HttpRoute, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    secrets: tuple[Secret, ...] = ()
    monitors: tuple[Monitor, ...] = ()
    probes: Probes = field(default_factory=Probes)
    failures: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def whole(self) -> Cluster:
        """What checks share of this one: what is made of it once is made of that."""
        return self

    def failure(self, kind: str, namespace: str = ANY, name: str = ANY) -> Unreadable | None:
        """Why this object (or list) could not be read, None if it could."""
        for key in ((kind, namespace, name), (kind, namespace, ANY), (kind, ANY, ANY)):
            if key in self.failures:
                return Unreadable(self.failures[key])
        return None

    def service(self, namespace: str, name: str) -> Service | Unreadable | None:
        """A Service."""
        return self.failure("Service", namespace, name) or self._services.get((namespace, name))

    def workload(self, kind: str, namespace: str, name: str) -> Workload | Unreadable | None:
        """A workload of one kind."""
        return self.failure(kind, namespace, name) or self._workloads.get((kind, namespace, name))

    def slices_of(self, namespace: str, service: str) -> tuple[EndpointSlice, ...] | Unreadable:
        """The EndpointSlices of a Service."""
        return self.failure("EndpointSlice", namespace) or tuple(self._slices.get((namespace, service), ()))

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unreadable | None:
        """A ConfigMap."""
        return self.failure("ConfigMap", namespace, name) or self._config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str) -> Secret | Unreadable | None:
        """Whether a Secret exists."""
        return self.failure("Secret", namespace, name) or self._secrets.get((namespace, name))

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod by name."""
        return self._pods.get((namespace, name))

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it was not read."""
        found = self._namespaces.get(name)
        return found.labels if found else {}

    def ingresses_in(self, namespace: str) -> tuple[Ingress, ...] | Unreadable:
        """The Ingresses of a namespace."""
        return self.failure("Ingress", namespace) or tuple(self._ingresses.get(namespace, ()))

    def routes_to(self, namespace: str, service: str) -> tuple[HttpRoute, ...] | Unreadable:
        """The HTTPRoutes of any namespace that route to a Service."""
        return self.failure("HTTPRoute") or tuple(self._routes.get((namespace, service), ()))

    def monitors_in(self, namespace: str) -> tuple[Monitor, ...]:
        """The ServiceMonitors and PodMonitors of a namespace; those that cannot be read are none."""
        return tuple(self._monitors.get(namespace, ()))

    def node(self, agent_namespace: str, name: str) -> NodeRuntimeObservation | None:
        """The node object of this name."""
        return self._nodes.get((agent_namespace, name))

    def view(self, agent_namespace: str, node: str, uid: str) -> PodView | None:
        """What a node's object says of one pod, by the UID that the object knows it under."""
        return self._views.get((agent_namespace, node, uid)) if uid else None

    def lease(self, namespace: str, name: str) -> Lease | None:
        """A Lease."""
        return self._leases.get((namespace, name))

    def pods_selected(self, namespace: str, selector: Selector) -> list[Pod]:
        """The pods of a namespace that a selector selects, in the order of their names."""
        if selector.labels:
            # the rarest label first: a check must not cost a scan of the namespace
            buckets = [
                self._pods_by_label.get((namespace, key, value), []) for key, value in selector.labels.items()
            ]
            candidates = min(buckets, key=len)
        else:
            candidates = self._pods_by_namespace.get(namespace, [])
        return [pod for pod in candidates if selector.matches(pod.labels)]

    def pods_owned(self, namespace: str, kind: str, name: str) -> list[Pod]:
        """The pods whose controller has this kind and name."""
        return list(self._pods_by_owner.get((namespace, kind, name), ()))

    def workloads_owned(self, namespace: str, kind: str, name: str) -> list[Workload]:
        """The workloads whose controller has this kind and name."""
        return list(self._workloads_by_owner.get((namespace, kind, name), ()))

    def services_selecting(self, pod: Pod) -> list[Service]:
        """The Services of the pod's namespace whose selector selects it."""
        return [
            service
            for key, value in pod.labels.items()
            for service in self._services_by_label.get((pod.namespace, key, value), ())
            if service.selector.matches(pod.labels)
        ]

    def index(self, before: Cluster | None = None) -> None:
        """Make all indexes now; those of what is the very same in another cluster are taken from there."""
        for source, names in _INDEXES.items():
            is_same = before is not None and getattr(before, source) is getattr(self, source)
            for name in names:
                if is_same and before is not None:
                    self.__dict__[name] = getattr(before, name)
                else:
                    getattr(self, name)

    @cached_property
    def _pods(self) -> dict[Name, Pod]:
        return {(pod.namespace, pod.name): pod for pod in self._sorted_pods}

    @cached_property
    def _sorted_pods(self) -> list[Pod]:
        return sorted(self.pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))

    @cached_property
    def _pods_by_namespace(self) -> dict[str, list[Pod]]:
        index: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self._sorted_pods:
            index[pod.namespace].append(pod)
        return index

    @cached_property
    def _pods_by_label(self) -> dict[tuple[str, str, str], list[Pod]]:
        index: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        for pod in self._sorted_pods:
            for key, value in pod.labels.items():
                index[pod.namespace, key, value].append(pod)
        return index

    @cached_property
    def _pods_by_owner(self) -> dict[tuple[str, str, str], list[Pod]]:
        index: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        for pod in self._sorted_pods:
            if pod.owner:
                index[pod.namespace, pod.owner.kind, pod.owner.name].append(pod)
        return index

    @cached_property
    def _services(self) -> dict[Name, Service]:
        return _by_name(self.services)

    @cached_property
    def _services_by_label(self) -> dict[tuple[str, str, str], list[Service]]:
        # under one label of the selector only: that label is one a selected pod must have
        index: defaultdict[tuple[str, str, str], list[Service]] = defaultdict(list)
        for service in sorted(self.services, key=lambda item: (item.namespace, item.name)):
            if service.selector.labels:
                key, value = min(service.selector.labels.items())
                index[service.namespace, key, value].append(service)
        return index

    @cached_property
    def _slices(self) -> dict[Name, list[EndpointSlice]]:
        index: defaultdict[Name, list[EndpointSlice]] = defaultdict(list)
        for item in sorted(self.slices, key=lambda item: (item.namespace, item.name)):
            index[item.namespace, item.service].append(item)
        return index

    @cached_property
    def _workloads(self) -> dict[tuple[str, str, str], Workload]:
        return {(item.kind, item.namespace, item.name): item for item in self.workloads}

    @cached_property
    def _workloads_by_owner(self) -> dict[tuple[str, str, str], list[Workload]]:
        index: defaultdict[tuple[str, str, str], list[Workload]] = defaultdict(list)
        for item in sorted(self.workloads, key=lambda item: (item.kind, item.namespace, item.name)):
            if item.owner:
                index[item.namespace, item.owner.kind, item.owner.name].append(item)
        return index

    @cached_property
    def _namespaces(self) -> dict[str, Namespace]:
        return {item.name: item for item in self.namespaces}

    @cached_property
    def _nodes(self) -> dict[Name, NodeRuntimeObservation]:
        return _by_name(self.nodes)

    @cached_property
    def _views(self) -> dict[tuple[str, str, str], PodView]:
        return {(node.namespace, node.name, pod.uid): pod for node in self.nodes for pod in node.pods}

    @cached_property
    def _leases(self) -> dict[Name, Lease]:
        return _by_name(self.leases)

    @cached_property
    def _config_maps(self) -> dict[Name, ConfigMap]:
        return _by_name(self.config_maps)

    @cached_property
    def _secrets(self) -> dict[Name, Secret]:
        return _by_name(self.secrets)

    @cached_property
    def _ingresses(self) -> dict[str, list[Ingress]]:
        index: defaultdict[str, list[Ingress]] = defaultdict(list)
        for item in sorted(self.ingresses, key=lambda item: (item.namespace, item.name)):
            index[item.namespace].append(item)
        return index

    @cached_property
    def _routes(self) -> dict[Name, list[HttpRoute]]:
        index: defaultdict[Name, list[HttpRoute]] = defaultdict(list)
        for item in sorted(self.routes, key=lambda item: (item.namespace, item.name)):
            for backend in item.backends:
                index[backend.namespace, backend.service].append(item)
        return index

    @cached_property
    def _monitors(self) -> dict[str, list[Monitor]]:
        index: defaultdict[str, list[Monitor]] = defaultdict(list)
        for item in sorted(self.monitors, key=lambda item: (item.kind, item.namespace, item.name)):
            index[item.namespace].append(item)
        return index


# what each field is indexed by
_INDEXES: Final = {
    "pods": ("_sorted_pods", "_pods", "_pods_by_namespace", "_pods_by_label", "_pods_by_owner"),
    "services": ("_services", "_services_by_label"),
    "slices": ("_slices",),
    "workloads": ("_workloads", "_workloads_by_owner"),
    "namespaces": ("_namespaces",),
    "nodes": ("_nodes", "_views"),
    "leases": ("_leases",),
    "config_maps": ("_config_maps",),
    "secrets": ("_secrets",),
    "ingresses": ("_ingresses",),
    "routes": ("_routes",),
    "monitors": ("_monitors",),
}

T = TypeVar("T", Service, NodeRuntimeObservation, Lease, ConfigMap, Secret)


def _by_name(items: Iterable[T]) -> dict[Name, T]:
    return {(item.namespace, item.name): item for item in items}
