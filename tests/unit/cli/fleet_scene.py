# SPDX-License-Identifier: MIT
"""A small cluster in every state that the plugin shows; its clock stands at NOW."""

from __future__ import annotations

from typing import Any

from tests.support.fleet_api import FleetApi

Raw = dict[str, Any]
PACTO = "pacto.trianalab.io/v1alpha1"
AGENT = {"app.kubernetes.io/name": "pacto-node-agent", "app.kubernetes.io/part-of": "pacto"}
OPERATOR = {"app.kubernetes.io/name": "pacto-operator"}
IMAGE = "ghcr.io/trianalab/pacto/dashboard:0.1.0"


def finding(code: str, severity: str, subject: str, message: str, collector: str, path: str = "") -> Raw:
    """A finding as the operator writes it."""
    refs = {"source": "k8s", "collector": collector, "observedAt": "2026-10-18T09:12:30Z",
            "detectedAt": "2026-10-18T09:12:30Z"}  # fmt: skip
    raw = {"code": code, "severity": severity, "category": "RuntimeDrift", "subject": subject,
           "contractPath": path, "message": message, "evidenceRefs": [refs]}  # fmt: skip
    return {name: value for name, value in raw.items() if value}


def pacto(
    namespace: str, name: str, verdict: str = "", findings: list[Raw] | None = None, **status: Any
) -> Raw:
    """A Pacto; without a verdict one that no check has seen."""
    raw: Raw = {
        "apiVersion": PACTO,
        "kind": "Pacto",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"team": namespace},
            "managedFields": [{}],
        },
        "spec": {"contractRef": {"inline": "x"}, "target": {"serviceName": name}},
    }
    if verdict:
        severities = [item["severity"] for item in findings or []]
        counts = {f"{key}Count": severities.count(key) for key in ("error", "warning", "info", "unknown")}
        raw["status"] = {
            "contractStatus": verdict,
            "contractVersion": "1.2.0",
            "summary": counts,
            "evaluationCoverage": {"evaluated": 2, "required": 3},
            "findings": findings or [],
            "lastReconciledAt": "2026-10-18T09:12:32Z",
            **status,
        }
    return raw


def node(name: str, system: str = "linux") -> Raw:
    """A Node."""
    labels = {"kubernetes.io/os": system}
    status = {"nodeInfo": {"kernelVersion": "6.8.0"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def observation(
    name: str, pods: list[Raw], reason: str = "", state: str = "Running", dropped: int = 0
) -> Raw:
    """What an agent publishes."""
    return {
        "apiVersion": PACTO,
        "kind": "NodeRuntimeObservation",
        "metadata": {"name": name, "namespace": "pacto-node-agent", "labels": AGENT},
        "nodeName": name,
        "lastPublished": "2026-10-18T09:00:00Z",
        "collection": {"state": state, "reason": reason, "message": "", "droppedEvents": dropped,
                       "unattributedEvents": 2, "foreignEvents": 1},
        "node": {"kernelRelease": "6.8.0", "cgroupMode": "v2", "bootID": "b", "agentVersion": "0.1.0",
                 "mapper": "iter"},
        "pods": pods,
    }  # fmt: skip


def lease(name: str, renewed: str) -> Raw:
    """A heartbeat."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "pacto-node-agent"},
        "spec": {"renewTime": renewed, "leaseDurationSeconds": 90},
    }


def pod(namespace: str, name: str, on: str, uid: str) -> Raw:
    """A running pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": {"nodeName": on, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "startTime": "2026-10-18T08:00:00Z",
                   "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def view(uid: str, complete: bool = True, reasons: list[str] | None = None) -> Raw:
    """One pod of an agent's view."""
    peers = [
        {"address": "10.96.0.12", "port": 5432, "succeeded": 12, "failed": 1,
         "lastSuccess": "2026-10-18T09:12:00Z", "lastFailure": "2026-10-18T09:11:00Z",
         "failureReason": "refused"},
        {"address": "fd00::7", "port": 80, "failed": 3, "lastFailure": "2026-10-18T09:12:40Z",
         "failureReason": "timeout"},
    ]  # fmt: skip
    return {
        "uid": uid,
        "baselineAt": "2026-10-18T09:10:44Z",
        "complete": complete,
        "reasons": reasons or [],
        "listeners": [{"address": "0.0.0.0", "port": 8080}, {"address": "::", "port": 8443, "v6only": False}],
        "peers": peers,
    }


def workload(kind: str, namespace: str, name: str, labels: Raw, **status: Any) -> Raw:
    """The operator's Deployment or the agents' DaemonSet."""
    template = {"spec": {"containers": [{"name": "main", "image": IMAGE}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "generation": 1},
        "spec": {"replicas": 1, "template": template} if kind == "Deployment" else {"template": template},
        "status": {"observedGeneration": 1, **status},
    }


ABSENT = finding(
    "INTERFACE_ABSENT", "error", "interface/api",
    "2 ready endpoints, every ready backing pod has complete coverage and none listens on port 8080",
    "k8s-observer+ebpf", "interfaces[0]",
)  # fmt: skip
UNDECLARED = finding(
    "DEPENDENCY_UNDECLARED", "warning", "dependency/audit", "talks to audit, which no dependency declares",
    "ebpf", "dependencies",
)  # fmt: skip
STALE = finding(
    "EVIDENCE_STALE", "unknown", "interface/api", "the kernel view of pod ledger-0 on node node-b is stale",
    "k8s-observer+ebpf", "interfaces[0]",
)  # fmt: skip


def fill(api: FleetApi) -> FleetApi:
    """Everything at once."""
    kernel = {"complete": 2, "partial": 0, "failed": 0, "stale": 0, "reasons": {}}
    window = {
        "kind": "dependency",
        "subject": "db",
        "firstObservedNegativeAt": "2026-10-18T09:12:00Z",
    }
    invalid = {
        "valid": False,
        "errors": [{"code": "INVALID_SEMVER", "path": "service.version", "message": "is no version"}],
    }
    api.add(
        pacto("shop", "inventory", "Compliant", kernelEvidence=kernel, observationWindows=[window]),
        pacto("shop", "orders", "Warning", [UNDECLARED], kernelEvidence=kernel),
        pacto("shop", "payments", "NonCompliant", [UNDECLARED, ABSENT], kernelEvidence=kernel),
        pacto("ops", "ledger", "Unknown", [STALE], kernelEvidence={**kernel, "complete": 0, "stale": 1}),
        pacto("ops", "fresh"),
        pacto("ops", "broken", "Invalid", validation=invalid),
        workload("Deployment", "pacto-operator-system", "pacto-operator", OPERATOR,
                 readyReplicas=1, updatedReplicas=1),
        workload("DaemonSet", "pacto-node-agent", "pacto-node-agent", AGENT,
                 desiredNumberScheduled=4, numberReady=4, numberAvailable=3,
                 updatedNumberScheduled=4),
        *(node(f"node-{letter}") for letter in "abcde"),
        node("windows", "windows"),
        observation("node-a", [view("uid-1"), view("uid-2", False, ["Truncated"])]),
        observation("node-b", [view("uid-3")]),
        observation("node-c", [], "LoadFailed", "Failed"),
        observation("node-d", [view("uid-4")], "EventsDropped", "Degraded", 17),
        lease("node-a", "2026-10-18T09:12:30Z"),
        lease("node-b", "2026-10-18T09:10:00Z"),
        lease("node-c", "2026-10-18T09:12:40Z"),
        lease("node-d", "2026-10-18T09:14:00Z"),
        pod("shop", "payments-0", "node-a", "uid-1"),
        pod("shop", "orders-0", "node-a", "uid-2"),
        pod("ops", "ledger-0", "node-b", "uid-3"),
        pod("shop", "inventory-0", "node-d", "uid-4"),
        pod("shop", "inventory-1", "node-e", "uid-5"),
    )  # fmt: skip
    return api
