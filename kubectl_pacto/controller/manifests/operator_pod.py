# SPDX-License-Identifier: MIT
"""The operator's Deployment: values become the options of `pacto operator`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_pacto.controller.manifests.operator_arguments import CERTIFICATE_FOLDER, METRICS_PORT, arguments
from kubectl_pacto.controller.manifests.release_values import image

Values = Mapping[str, Any]


def deployment(values: Values, name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """One pod, or several of which one leads."""
    selector = {"app.kubernetes.io/name": labels["app.kubernetes.io/name"]}
    template: dict[str, Any] = {"labels": {**values["podLabels"], **labels}}
    if values["podAnnotations"]:
        template["annotations"] = values["podAnnotations"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": values["replicaCount"],
            "selector": {"matchLabels": selector},
            "template": {"metadata": template, "spec": _pod(values, name)},
        },
    }


def _pod(values: Values, name: str) -> dict[str, Any]:
    optional = {
        "imagePullSecrets": values["imagePullSecrets"],
        "nodeSelector": values["nodeSelector"],
        "tolerations": values["tolerations"],
        "affinity": values["affinity"],
        "priorityClassName": values["priorityClassName"],
        "volumes": _volumes(values),
    }
    return {
        "serviceAccountName": values["serviceAccount"]["name"] or name,
        "securityContext": values["podSecurityContext"],
        "terminationGracePeriodSeconds": 20,
        "containers": [_container(values, name)],
        **{key: value for key, value in optional.items() if value},
    }


def _volumes(values: Values) -> list[dict[str, Any]]:
    metrics = values["metrics"]
    secret = {"secretName": metrics["certificate"]["secretName"]}
    return [{"name": "metrics-certificate", "secret": secret}] if metrics["secure"] else []


def _container(values: Values, name: str) -> dict[str, Any]:
    ports = [{"name": "probes", "containerPort": 8081}]
    if values["metrics"]["enabled"]:
        ports.append({"name": "metrics", "containerPort": METRICS_PORT})
    mount = {"name": "metrics-certificate", "mountPath": CERTIFICATE_FOLDER, "readOnly": True}
    return {
        "name": "manager",
        "image": image(values),
        "imagePullPolicy": values["image"]["pullPolicy"],
        "command": ["pacto", "operator"],
        "args": arguments(values),
        "env": _environment(values, name),
        "ports": ports,
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "probes"}, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "probes"}, "periodSeconds": 10},
        "resources": values["resources"],
        "securityContext": values["securityContext"],
        **({"volumeMounts": [mount]} if values["metrics"]["secure"] else {}),
    }


def _environment(values: Values, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for variable, path in (("POD_NAMESPACE", "metadata.namespace"), ("POD_NAME", "metadata.name"))
    ]
    found.append({"name": "OPERATOR_DEPLOYMENT_NAME", "value": name})
    # its threads take turns; an arena for each would keep what each has freed
    found.append({"name": "MALLOC_ARENA_MAX", "value": "1"})
    if values["insecureRegistries"]:
        found.append({"name": "PACTO_INSECURE_REGISTRIES", "value": ",".join(values["insecureRegistries"])})
    return found
