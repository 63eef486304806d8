# SPDX-License-Identifier: MIT
"""The chart's values: every key with its default, and what of a user's values is not one.

The keys are the specification's and the public project's where it has them. Durations are text.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from kubectl_pacto import __version__
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.errors import UsageError

AGENT: Final = NodeAgentValues()
# free maps and lists: what is in them is Kubernetes' own, and replaces the default as a whole
FREE: Final = frozenset(
    {
        "affinity", "annotations", "limits", "nodeSelector", "podAnnotations", "podLabels",
        "podSecurityContext", "requests", "resources", "securityContext",
    }
)  # fmt: skip

DEFAULTS: Final[dict[str, Any]] = {
    "replicaCount": 1,
    "image": {"repository": "ghcr.io/trianalab/pacto/operator", "pullPolicy": "IfNotPresent", "tag": ""},
    "imagePullSecrets": [],
    "nameOverride": "",
    "fullnameOverride": "",
    "insecureRegistries": [],
    "serviceAccount": {"create": True, "automount": True, "annotations": {}, "name": ""},
    "podAnnotations": {},
    "podLabels": {},
    "podSecurityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65532,
    },
    "resources": {
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"cpu": "500m", "memory": "512Mi"},
    },
    "controller": {
        "watchNamespace": "",
        "stabilizationWindow": "",
        "enableProbing": False,
        "enableMetricsObservation": False,
        "interfaceNameMatchDiscovery": False,
        "kernelEvidence": {
            "namespace": "",
            "staleness": "",
            "recency": "",
            "hostKernelRuntimeClasses": ["runc", "crun", "nvidia"],
            "meshProxies": [],
        },
    },
    "leaderElection": {"enabled": True},
    "metrics": {
        "enabled": True,
        "service": {"port": 8080},
        "serviceMonitor": {"enabled": False, "interval": "", "scrapeTimeout": ""},
    },
    "nodeAgent": {
        "enabled": False,
        "namespace": AGENT.namespace,
        "image": "",
        "imagePullPolicy": AGENT.image_pull_policy,
        "publishInterval": AGENT.publish_interval,
        "resyncInterval": AGENT.resync_interval,
        "mapper": AGENT.mapper,
        "sysResource": False,
        "seccompProfile": AGENT.seccomp_profile,
        "maxUnavailable": AGENT.max_unavailable,
        "priorityClassName": "",
        "resources": AGENT.resources,
        "nodeSelector": {},
        "tolerations": AGENT.tolerations,
    },
    "nodeSelector": {},
    "tolerations": [],
    "affinity": {},
}


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """A user's values over the defaults. Raises UsageError naming a key that is none, or of another kind."""
    return _over(DEFAULTS, values, "")


def _over(defaults: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    found = copy.deepcopy(dict(defaults))
    for key, value in given.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in defaults:
            raise UsageError(f"{path} is no value; there are: {', '.join(sorted(defaults))}")
        default = defaults[key]
        if value is None:
            continue
        if type(default) is not type(value):
            raise UsageError(f"{path} must be {_NAMES[type(default)]}, not {value!r}")
        is_free = key in FREE or not isinstance(default, dict)
        found[key] = copy.deepcopy(value) if is_free else _over(default, value, path)
    return found


_NAMES: Final = {
    bool: "true or false", int: "a whole number", str: "text", list: "a list", dict: "a mapping"
}  # fmt: skip


def agent_values(values: Mapping[str, Any]) -> NodeAgentValues:
    """`nodeAgent` as the agent's objects take it."""
    given = values["nodeAgent"]
    return NodeAgentValues(
        namespace=given["namespace"],
        image=given["image"] or AGENT.image,
        image_pull_policy=given["imagePullPolicy"],
        publish_interval=given["publishInterval"],
        resync_interval=given["resyncInterval"],
        mapper=given["mapper"],
        sys_resource=given["sysResource"],
        seccomp_profile=given["seccompProfile"],
        max_unavailable=given["maxUnavailable"],
        priority_class_name=given["priorityClassName"],
        resources=given["resources"],
        node_selector=given["nodeSelector"],
        tolerations=given["tolerations"],
    )


def image(values: Mapping[str, Any]) -> str:
    """The operator's image."""
    given = values["image"]
    return f"{given['repository']}:{given['tag'] or __version__}"
