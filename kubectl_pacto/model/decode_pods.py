# SPDX-License-Identifier: MIT
"""Pods and workloads from decoded Kubernetes JSON.

Each raises MalformedObject naming the field, if one has the wrong shape.
"""

from __future__ import annotations

from typing import Final

from kubectl_pacto.model.addresses import canonical
from kubectl_pacto.model.decode_net import int_or_string, name_of
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.kube import Container, OwnerRef, Pod, Probe, Selector, Volume, Workload

_CONFIG_HASH: Final = "kubernetes.io/config.hash"
_CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"
_MESH_ANNOTATIONS: Final = ("sidecar.istio.io/status", "linkerd.io/proxy-version")
_HANDLERS: Final = ("httpGet", "tcpSocket", "grpc", "exec")


def decode_pod(top: Fields) -> Pod:
    """A v1 Pod."""
    namespace, name = name_of(top)
    metadata, spec, status = top.child("metadata"), top.child("spec"), top.child("status")
    annotations = metadata.text_map("annotations")
    owner = decode_owner(metadata)
    single = status.text("podIP")
    ips = [item.text("ip") for item in status.children("podIPs")] or [single]
    is_static = _CONFIG_MIRROR in annotations or (owner is not None and owner.kind == "Node")
    return Pod(
        namespace=namespace,
        name=name,
        uid=metadata.text("uid"),
        labels=metadata.text_map("labels"),
        node=spec.text("nodeName"),
        phase=status.text("phase"),
        deleting="deletionTimestamp" in metadata,
        started=status.instant("startTime"),
        container_started=_last_container_start(status),
        ready=_is_ready(status),
        ips=tuple(canonical(ip) for ip in ips if ip),
        host_network=spec.flag("hostNetwork"),
        runtime_class=spec.text("runtimeClassName"),
        owner=owner,
        config_hash=annotations.get(_CONFIG_HASH, "") if is_static else "",
        has_mesh_annotation=any(mark in annotations for mark in _MESH_ANNOTATIONS),
        containers=_containers(spec, "containers"),
        init_containers=_containers(spec, "initContainers"),
    )


def decode_owner(metadata: Fields) -> OwnerRef | None:
    """The controller among the owner references."""
    for ref in metadata.children("ownerReferences"):
        if ref.flag("controller"):
            return OwnerRef(ref.text("kind"), ref.text("name"), ref.text("uid"))
    return None


def _is_ready(status: Fields) -> bool:
    return any(
        item.text("type") == "Ready" and item.text("status") == "True"
        for item in status.children("conditions")
    )


def _last_container_start(status: Fields) -> float | None:
    starts = [
        started
        for list_name in ("containerStatuses", "initContainerStatuses")
        for item in status.children(list_name)
        if (started := item.child("state").child("running").instant("startedAt")) is not None
    ]
    return max(starts, default=None)


def _containers(spec: Fields, name: str) -> tuple[Container, ...]:
    return tuple(_decode_container(item) for item in spec.children(name))


def _decode_container(fields: Fields) -> Container:
    mounts: dict[str, bool] = {}
    for mount in fields.children("volumeMounts"):
        volume = mount.text("name")
        mounts[volume] = mounts.get(volume, True) and mount.flag("readOnly")
    return Container(
        name=fields.text("name"),
        image=fields.text("image"),
        ports=tuple((port.text("name"), port.count("containerPort")) for port in fields.children("ports")),
        readiness=_decode_probe(fields, "readinessProbe"),
        liveness=_decode_probe(fields, "livenessProbe"),
        mounts=tuple(mounts.items()),
    )


def _decode_probe(fields: Fields, name: str) -> Probe | None:
    probe = fields.optional_child(name)
    if probe is None:
        return None
    for handler in _HANDLERS:
        action = probe.optional_child(handler)
        if action is not None:
            delay = probe.optional_int("initialDelaySeconds")
            return Probe(handler, int_or_string(action, "port"), action.text("host"), delay)
    return Probe("", initial_delay=probe.optional_int("initialDelaySeconds"))


def decode_workload(top: Fields) -> Workload:
    """An apps/v1 or batch/v1 workload."""
    namespace, name = name_of(top)
    kind = top.text("kind")
    metadata, spec = top.child("metadata"), top.child("spec")
    job_spec = spec.child("jobTemplate").child("spec") if kind == "CronJob" else spec
    pod_spec = job_spec.child("template").child("spec")
    bound = "parallelism" if kind in ("Job", "CronJob") else "replicas"
    return Workload(
        kind=kind,
        namespace=namespace,
        name=name,
        uid=metadata.text("uid"),
        owner=decode_owner(metadata),
        selector=_decode_selector(spec.child("selector")),
        parallel=job_spec.count(bound, default=1),
        containers=_containers(pod_spec, "containers"),
        init_containers=_containers(pod_spec, "initContainers"),
        volumes=tuple(_decode_volume(item) for item in pod_spec.children("volumes")),
        claim_templates=tuple(
            item.child("metadata").text("name") for item in spec.children("volumeClaimTemplates")
        ),
        strategy=spec.child("strategy").text("type"),
        pod_management=spec.text("podManagementPolicy"),
        grace_seconds=pod_spec.optional_int("terminationGracePeriodSeconds"),
    )


def _decode_selector(fields: Fields) -> Selector:
    return Selector(
        fields.text_map("matchLabels"),
        tuple(
            (item.text("key"), item.text("operator"), item.texts("values"))
            for item in fields.children("matchExpressions")
        ),
    )


def _decode_volume(fields: Fields) -> Volume:
    claim = fields.optional_child("persistentVolumeClaim")
    if claim is not None:
        return Volume(
            fields.text("name"), "persistentVolumeClaim", claim.text("claimName"), claim.flag("readOnly")
        )
    return Volume(fields.text("name"), next((key for key in fields.names() if key != "name"), ""))
