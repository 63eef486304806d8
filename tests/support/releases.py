# SPDX-License-Identifier: MIT
"""Values that a release may have, the objects that both installers make of them, and what may differ."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

Object = dict[str, Any]
Key = tuple[str, str, str, str]

AGENT: Final = {"nodeAgent": {"enabled": True}}
FULL: Final[dict[str, Any]] = {
    "replicaCount": 2,
    "image": {"repository": "registry.example:5000/pacto", "tag": "1.2.3", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "insecureRegistries": ["registry.example:5000", "other:80"],
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}, "name": "w"},
    "podAnnotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
    "podLabels": {"team": "platform", "app.kubernetes.io/name": "cannot-be-changed"},
    "podSecurityContext": {"fsGroup": 65532},
    "securityContext": {"runAsUser": None, "readOnlyRootFilesystem": True},
    "resources": {"limits": {"cpu": None, "memory": "1Gi"}, "requests": {"cpu": 1}},
    "priorityClassName": "system-cluster-critical",
    "controller": {
        "stabilizationWindow": "1m30s", "workers": 8, "enableProbing": True, "enableMetricsObservation": True,
        "interfaceNameMatchDiscovery": True,
        "kernelEvidence": {
            "staleness": "45s", "recency": "5m", "hostKernelRuntimeClasses": ["runc", "youki"],
            "meshProxies": ["envoy", "kuma-sidecar"],
        },
    },
    "metrics": {
        "service": {"port": 9090},
        "secure": True,
        "certificate": {"secretName": "metrics-tls", "certName": "cert.pem", "keyName": "key.pem"},
        "serviceMonitor": {
            "enabled": True, "tlsConfig": {"insecureSkipVerify": True}, "interval": "15s",
            "scrapeTimeout": "5s", "labels": {"release": "prom"},
        },
    },
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "metrics"}}}],
    },
    "nodeAgent": {
        "enabled": True, "namespace": "agents", "image": "registry.example:5000/agent@sha256:" + "a" * 64,
        "imagePullPolicy": "Never", "imagePullSecrets": [{"name": "a"}, {"name": "b"}],
        "publishInterval": "10s", "resyncInterval": "1m",
        "mapper": "iter", "sysResource": True, "seccompProfile": "Unconfined",
        "maxUnavailable": 2, "priorityClassName": "system-node-critical",
        "resources": {"limits": {"cpu": None}, "requests": {"memory": "100Mi"}},
        "nodeSelector": {"pool": "grün & <\"1\">"},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
                        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1000000}],
    },
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "x", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
}  # fmt: skip

SETS: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "agent": AGENT,
    "everything": FULL,
    "evidence of agents run by hand": {"controller": {"kernelEvidence": {"namespace": "mine"}}},
    "one namespace": {"controller": {"watchNamespace": "shop"}, **AGENT},
    "one namespace without the agent": {"controller": {"watchNamespace": "shop"}},
    "metrics over TLS": {
        "metrics": {
            "secure": True,
            "certificate": {"secretName": "tls"},
            "serviceMonitor": {"enabled": True},
        },
    },
    "metrics over TLS for one namespace": {
        "metrics": {"secure": True, "certificate": {"secretName": "tls"}},
        "controller": {"watchNamespace": "shop"},
    },
    "no metrics": {"metrics": {"enabled": False}, "networkPolicy": {"enabled": True}},
    "guarded agent": {"networkPolicy": {"enabled": True}, **AGENT},
    "account of somebody else": {"serviceAccount": {"create": False, "name": "given"}},
    "no election": {"leaderElection": {"enabled": False}},
    "no crds": {"crds": {"enabled": False}},
    "crds go": {"crds": {"keep": False}},
    "another name": {"nameOverride": "conformance"},
    "another full name": {"fullnameOverride": "conformance"},
    "a name within the name": {"nameOverride": "pacto"},
    "numbers as names": {"nodeAgent": {"enabled": True, "namespace": "123"}, "fullnameOverride": "e1"},
    "empty lists": {
        "nodeAgent": {"enabled": True, "tolerations": []},
        "controller": {"kernelEvidence": {"hostKernelRuntimeClasses": []}},
    },
    "no bounds": {"resources": {"limits": None, "requests": None}},
}

# beside them Helm users expect these labels; the plugin's objects have no release and no chart
HELM_LABELS: Final = frozenset(
    {
        "helm.sh/chart",
        "app.kubernetes.io/instance",
        "app.kubernetes.io/version",
        "app.kubernetes.io/managed-by",
    }
)
# tells Helm what `uninstall` keeps; the plugin keeps CRDs unless told otherwise
KEEP: Final = "helm.sh/resource-policy"


def key(one: Object) -> Key:
    """What tells an object from all others."""
    metadata = one["metadata"]
    return one["apiVersion"], one["kind"], metadata.get("namespace", ""), metadata["name"]


def by_key(objects: Iterable[Object]) -> dict[Key, Object]:
    """Objects by their key, each once."""
    found: dict[Key, Object] = {}
    for one in objects:
        assert key(one) not in found, key(one)
        found[key(one)] = one
    return found


def of_helm(objects: Iterable[Object]) -> dict[Key, Object]:
    """The objects of a chart without what only Helm's have, each of which must have its labels."""
    found = {}
    for made in objects:
        one = copy.deepcopy(made)
        metadata = one["metadata"]
        annotations = metadata.get("annotations", {})
        if "helm.sh/hook" in annotations:
            continue  # a test, no part of what is installed
        assert metadata["labels"].keys() >= HELM_LABELS, key(one)
        metadata["labels"] = {k: v for k, v in metadata["labels"].items() if k not in HELM_LABELS}
        if annotations.pop(KEEP, None):
            assert one["kind"] == "CustomResourceDefinition"
        if not annotations:
            metadata.pop("annotations", None)
        found[key(one)] = one
    return found


def of_plugin(objects: Iterable[Object], namespace: str) -> dict[Key, Object]:
    """The plugin's objects but for the release's namespace, which `helm --create-namespace` makes."""
    found = by_key(objects)
    assert found.pop(("v1", "Namespace", "", namespace))
    return found


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that may be changed."""
    return copy.deepcopy(dict(values))
