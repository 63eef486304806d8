# SPDX-License-Identifier: MIT
"""Manifests that cluster tests share, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.cluster.api import Object
from tests.images import runtime, workloads

AGENT_CAPABILITIES: Final = ("BPF", "PERFMON", "SYS_PTRACE")
# a program that is started inside a container may take more than a kubelet's usual second
PROBE_SECONDS: Final = 10
AGENT_ENVIRONMENT: Final = [
    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
]


def container(workload: str, *arguments: str, port: int = 8080, **more: Any) -> Object:
    """A container of a workload image; arguments replace the image's own."""
    made: Object = {"name": workload, "image": workloads.name(workload), "imagePullPolicy": "Never"}
    if arguments:
        made["args"] = list(arguments)
    if port:
        made["ports"] = [{"containerPort": port}]
    return made | more


def pod_template(labels: dict[str, str], containers: Sequence[Object], **spec: Any) -> Object:
    """A pod template that ends at once when it is deleted."""
    return {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": list(containers), **spec},
    }


def deployment(
    namespace: str, name: str, containers: Sequence[Object], replicas: int = 1, **spec: Any
) -> Object:
    """A Deployment whose pods are labelled app=NAME."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": pod_template(labels, containers, **spec),
        },
    }


def pod(namespace: str, name: str, containers: Sequence[Object], **spec: Any) -> Object:
    """A pod labelled app=NAME."""
    made = pod_template({"app": name}, containers, **spec)
    made["metadata"] |= {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", **made}


def service(namespace: str, name: str, port: int = 80, target: int = 8080) -> Object:
    """A ClusterIP Service of the pods labelled app=NAME."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]},
    }


def http_probe(port: int = 8080) -> Object:
    """A readiness probe that asks every second."""
    return {"httpGet": {"port": port, "path": "/"}, "periodSeconds": 1, "timeoutSeconds": PROBE_SECONDS}


def file_probe() -> Object:
    """A readiness probe that any workload passes: it looks at a file and at no socket."""
    command = ["test", "-e", "/tmp/ready"]
    return {"exec": {"command": command}, "periodSeconds": 1, "timeoutSeconds": PROBE_SECONDS}


def privileged(namespace: str) -> Object:
    """The label that admits pods with host access to a namespace."""
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}


def agent(namespace: str, *arguments: str) -> Object:
    """The node agent as a DaemonSet: three capabilities, everything else dropped."""
    labels = {"app": "agent"}
    made: Object = {
        "name": "agent",
        "image": runtime.NAME,
        "imagePullPolicy": "Never",
        "command": ["pacto", "agent", *arguments],
        "env": AGENT_ENVIRONMENT,
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": list(AGENT_CAPABILITIES)},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "cgroup", "mountPath": "/sys/fs/cgroup", "readOnly": True},
            {"name": "out", "mountPath": "/out"},
        ],
    }
    volumes = [{"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup"}}, {"name": "out", "emptyDir": {}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": pod_template(
                labels,
                [made],
                hostPID=True,
                automountServiceAccountToken=False,
                volumes=volumes,
                tolerations=[{"operator": "Exists"}],
            ),
        },
    }


def ready(found: Object) -> bool:
    """A pod's Ready condition."""
    conditions = found.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
