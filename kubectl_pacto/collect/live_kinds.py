# SPDX-License-Identifier: MIT
"""The kinds that the operator follows: where each is served and how it is cut down to what checks read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubectl_pacto.collect.compact import (
    compact_pacto,
    compact_pod,
    compact_service,
    compact_slice,
    compact_workload,
)
from kubectl_pacto.kube.paths import PACTO_API, namespaced
from kubectl_pacto.model.decode_net import (
    decode_http_route,
    decode_ingress,
    decode_monitor,
    decode_namespace,
    decode_service,
    decode_slice,
)
from kubectl_pacto.model.decode_pods import decode_pod, decode_workload
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.kube import EndpointSlice, Pod, Service, Workload
from kubectl_pacto.model.pacto import Pacto, decode_pacto

CORE: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Known:
    """A Pacto, with what a write to it must name, and what of it the checks of others read.

    The uid and the version that the API server gave it say which it is: the rest is not compared.
    """

    pacto: Pacto = field(compare=False)
    uid: str
    version: str
    revision: str = field(default="", compare=False)
    public: Pacto | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class LiveKind:
    """One kind; `field` is the field of Cluster it belongs to, `when` an option that turns it on."""

    kind: str
    api: str
    resource: str
    field: str
    decoder: Callable[[Fields], Any]
    optional: bool = False
    when: str = ""
    cluster_wide: bool = False

    def path(self, namespace: str = "") -> str:
        """Where it is listed, in one namespace or in all."""
        if namespace and not self.cluster_wide:
            return namespaced(self.api, namespace, self.resource)
        return f"{self.api}/{self.resource}"

    def decode(self, raw: dict[str, Any]) -> Any:
        """One item of a list, which does not say its kind. Raises MalformedObject."""
        return self.decoder(Fields({**raw, "kind": self.kind}))


def _known(top: Fields) -> Known:
    metadata = top.child("metadata")
    revision = top.child("status").text("currentRevision")
    pacto = compact_pacto(decode_pacto(top))
    public = replace(pacto, inline="", windows={}, status={})
    return Known(pacto, metadata.text("uid"), metadata.text("resourceVersion"), revision, public)


def _service(top: Fields) -> Service:
    return compact_service(decode_service(top))


def _pod(top: Fields) -> Pod:
    return compact_pod(decode_pod(top))


def _slice(top: Fields) -> EndpointSlice:
    return compact_slice(decode_slice(top))


def _workload(top: Fields) -> Workload:
    return compact_workload(decode_workload(top))


LIVE_KINDS: Final = (
    LiveKind("Pacto", PACTO_API, "pactos", "pactos", _known),
    LiveKind("Service", CORE, "services", "services", _service),
    LiveKind("Pod", CORE, "pods", "pods", _pod),
    LiveKind("Namespace", CORE, "namespaces", "namespaces", decode_namespace, cluster_wide=True),
    LiveKind("EndpointSlice", "/apis/discovery.k8s.io/v1", "endpointslices", "slices", _slice),
    LiveKind("Deployment", "/apis/apps/v1", "deployments", "workloads", _workload),
    LiveKind("StatefulSet", "/apis/apps/v1", "statefulsets", "workloads", _workload),
    LiveKind("ReplicaSet", "/apis/apps/v1", "replicasets", "workloads", _workload),
    LiveKind("Job", "/apis/batch/v1", "jobs", "workloads", _workload),
    LiveKind("CronJob", "/apis/batch/v1", "cronjobs", "workloads", _workload),
    LiveKind("Ingress", "/apis/networking.k8s.io/v1", "ingresses", "ingresses", decode_ingress),
    LiveKind(
        "HTTPRoute",
        "/apis/gateway.networking.k8s.io/v1",
        "httproutes",
        "routes",
        decode_http_route,
        optional=True,
    ),
    LiveKind(
        "ServiceMonitor",
        "/apis/monitoring.coreos.com/v1",
        "servicemonitors",
        "monitors",
        decode_monitor,
        optional=True,
        when="metrics",
    ),
    LiveKind(
        "PodMonitor",
        "/apis/monitoring.coreos.com/v1",
        "podmonitors",
        "monitors",
        decode_monitor,
        optional=True,
        when="metrics",
    ),
)
