# SPDX-License-Identifier: MIT
"""What a check saw of the target's objects, as a Pacto's status shows it. Judges nothing."""

from __future__ import annotations

from typing import Any

from kubectl_pacto.model.kube import Service, Workload
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.pods import target_workload


def runtime_fields(snapshot: Snapshot) -> dict[str, Any]:
    """The fields `resources` and, where the workload exists, `observedRuntime`."""
    pacto = snapshot.pacto
    workload = target_workload(snapshot)
    resources: dict[str, Any] = {}
    if pacto.service:
        service = snapshot.cluster.service(pacto.namespace, pacto.service)
        resources["service"] = {"name": pacto.service, "exists": isinstance(service, Service)}
    if pacto.workload_name:
        resources["workload"] = {
            "name": pacto.workload_name,
            "kind": pacto.workload_kind,
            "exists": isinstance(workload, Workload),
        }
    body: dict[str, Any] = {"resources": resources}
    if isinstance(workload, Workload):
        body["observedRuntime"] = _runtime(workload)
    return body


def _runtime(workload: Workload) -> dict[str, Any]:
    sources = {volume.source for volume in workload.volumes}
    body: dict[str, Any] = {
        "workloadKind": workload.kind,
        "deploymentStrategy": workload.strategy if workload.kind == "Deployment" else "",
        "podManagementPolicy": workload.pod_management if workload.kind == "StatefulSet" else "",
        "terminationGracePeriodSeconds": workload.grace_seconds,
        "containerImages": [item.image for item in workload.containers if item.image],
        "hasPVC": "persistentVolumeClaim" in sources or bool(workload.claim_templates),
        "hasEmptyDir": "emptyDir" in sources,
        "healthProbeInitialDelaySeconds": _initial_delay(workload),
    }
    return {name: value for name, value in body.items() if value not in ("", None, [])}


def _initial_delay(workload: Workload) -> int | None:
    """The delay of the first container's readiness probe, else of its liveness probe."""
    for item in workload.containers[:1]:
        for probe in (item.readiness, item.liveness):
            if probe is not None and probe.initial_delay is not None:
                return probe.initial_delay
    return None
