# SPDX-License-Identifier: MIT
"""The operator's Deployment: values become the options of `pacto operator`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubectl_pacto.controller.manifests.release_values import agent_values, image

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
    }
    return {
        "serviceAccountName": values["serviceAccount"]["name"] or name,
        "securityContext": values["podSecurityContext"],
        "terminationGracePeriodSeconds": 20,
        "containers": [_container(values, name)],
        **{key: value for key, value in optional.items() if value},
    }


def _container(values: Values, name: str) -> dict[str, Any]:
    ports = [{"name": "probes", "containerPort": 8081}]
    if values["metrics"]["enabled"]:
        ports.append({"name": "metrics", "containerPort": 8080})
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
    }


def _environment(values: Values, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for variable, path in (("POD_NAMESPACE", "metadata.namespace"), ("POD_NAME", "metadata.name"))
    ]
    found.append({"name": "OPERATOR_DEPLOYMENT_NAME", "value": name})
    if values["insecureRegistries"]:
        found.append({"name": "PACTO_INSECURE_REGISTRIES", "value": ",".join(values["insecureRegistries"])})
    return found


def arguments(values: Values) -> list[str]:
    """The command line; what is not set is the option's own default."""
    controller, evidence = values["controller"], values["controller"]["kernelEvidence"]
    told = {
        "--metrics-bind-address": ":8080" if values["metrics"]["enabled"] else "0",
        "--watch-namespace": controller["watchNamespace"],
        "--stabilization-window": controller["stabilizationWindow"],
        "--kernel-evidence-namespace": evidence["namespace"],
        "--staleness": evidence["staleness"],
        "--recency": evidence["recency"],
        "--host-kernel-runtime-classes": ",".join(evidence["hostKernelRuntimeClasses"]),
        "--mesh-proxies": ",".join(evidence["meshProxies"]),
    }
    switches = {
        "--leader-elect": values["leaderElection"]["enabled"],
        "--enable-probing": controller["enableProbing"],
        "--enable-metrics-observation": controller["enableMetricsObservation"],
        "--interface-name-match-discovery": controller["interfaceNameMatchDiscovery"],
    }
    found = [switch for switch, is_on in switches.items() if is_on]
    found += [f"{option}={value}" for option, value in told.items() if value]
    return [*found, *(_agent_arguments(values) if values["nodeAgent"]["enabled"] else ())]


def _agent_arguments(values: Values) -> list[str]:
    agent = agent_values(values)
    more = {
        "resources": agent.resources,
        "nodeSelector": agent.node_selector,
        "tolerations": agent.tolerations,
    }
    told = {
        "--node-agent-namespace": agent.namespace,
        "--node-agent-image": agent.image,
        "--node-agent-image-pull-policy": agent.image_pull_policy,
        "--publish-interval": agent.publish_interval,
        "--resync-interval": agent.resync_interval,
        "--mapper": agent.mapper,
        "--node-agent-seccomp-profile": agent.seccomp_profile,
        "--node-agent-max-unavailable": agent.max_unavailable,
        "--node-agent-priority-class": agent.priority_class_name,
        "--node-agent-values": json.dumps(more, sort_keys=True, separators=(",", ":")),
    }
    found = ["--enable-node-agent", *(f"{option}={value}" for option, value in told.items() if value)]
    return [*found, *(["--node-agent-sys-resource"] if agent.sys_resource else [])]
