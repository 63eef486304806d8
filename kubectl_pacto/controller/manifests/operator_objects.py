# SPDX-License-Identifier: MIT
"""Everything that is installed, as a function of values, in the order in which it must exist.

The operator gets no right to grant rights: what it needs in the agents' namespace is given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import yaml

from kubectl_pacto.controller.manifests import agent_objects
from kubectl_pacto.controller.manifests.operator_pod import deployment
from kubectl_pacto.controller.manifests.operator_rights import (
    agent_role,
    election_role,
    manager_rules,
)
from kubectl_pacto.controller.manifests.release_values import agent_values, complete

NAME: Final = "pacto-operator"
RBAC: Final = "rbac.authorization.k8s.io"
RESTRICTED: Final = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}
CRDS: Final = ("pactos", "pactorevisions", "noderuntimeobservations")
Object = dict[str, Any]


def release_objects(values: Mapping[str, Any], *, namespace: str) -> list[Object]:
    """All objects of an installation. Raises UsageError naming a value that is none."""
    given = complete(values)
    name = full_name(given)
    labels = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "pacto"}
    found = [*crds(), _namespace(namespace, labels)]
    if given["nodeAgent"]["enabled"]:
        found += agent_objects.before_the_agent(agent_values(given))
    found += _identity(given, name, namespace, labels)
    found.append(deployment(given, name, namespace, labels))
    if given["metrics"]["enabled"]:
        found += _metrics(given, name, namespace, labels)
    return found


def full_name(values: Mapping[str, Any]) -> str:
    """What the objects are called."""
    return str(values["fullnameOverride"] or values["nameOverride"] or NAME)


def crds() -> list[Object]:
    """The CustomResourceDefinitions, as generated."""
    folder = resources.files(__package__) / "crds"
    return [yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8")) for name in CRDS]


def _namespace(name: str, labels: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**labels, **RESTRICTED}},
    }


def account_name(values: Mapping[str, Any], name: str) -> str:
    """The operator's ServiceAccount."""
    return str(values["serviceAccount"]["name"] or name)


def _identity(values: Object, name: str, namespace: str, labels: Mapping[str, str]) -> list[Object]:
    account = values["serviceAccount"]
    subject = {
        "kind": "ServiceAccount",
        "name": account_name(values, name),
        "namespace": namespace,
    }
    found: list[Object] = []
    if account["create"]:
        metadata = {"name": subject["name"], "namespace": namespace, "labels": dict(labels)}
        if account["annotations"]:
            metadata["annotations"] = account["annotations"]
        found.append(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": metadata,
                "automountServiceAccountToken": account["automount"],
            }
        )
    found += _bound(f"{name}-manager", "", manager_rules(values), subject, labels)
    if values["leaderElection"]["enabled"]:
        found += _bound(f"{name}-leader-election", namespace, election_role(), subject, labels)
    where = evidence_namespace(values)
    if where:
        rules = agent_role(is_managed=values["nodeAgent"]["enabled"])
        found += _bound(f"{name}-node-agent", where, rules, subject, labels)
    return found


def evidence_namespace(values: Mapping[str, Any]) -> str:
    """Where kernel evidence is read; empty while it is off."""
    given = str(values["controller"]["kernelEvidence"]["namespace"])
    return given or (str(values["nodeAgent"]["namespace"]) if values["nodeAgent"]["enabled"] else "")


def _bound(
    name: str, namespace: str, rules: list[Object], subject: Object, labels: Mapping[str, str]
) -> list[Object]:
    """A Role with its binding, or of no namespace a ClusterRole with its."""
    scope = "" if namespace else "Cluster"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(labels)}
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": f"{scope}Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": f"{scope}RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": RBAC, "kind": f"{scope}Role", "name": name},
            "subjects": [dict(subject)],
        },
    ]


def _metrics(values: Object, name: str, namespace: str, labels: Mapping[str, str]) -> list[Object]:
    metadata = {"name": f"{name}-metrics", "namespace": namespace, "labels": dict(labels)}
    port = {"name": "metrics", "port": values["metrics"]["service"]["port"], "targetPort": "metrics"}
    found: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app.kubernetes.io/name": NAME}, "ports": [port]},
        }
    ]
    monitor = values["metrics"]["serviceMonitor"]
    if monitor["enabled"]:
        times = {key: monitor[key] for key in ("interval", "scrapeTimeout") if monitor[key]}
        found.append(
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "ServiceMonitor",
                "metadata": dict(metadata),
                "spec": {
                    "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
                    "endpoints": [{"port": "metrics", **times}],
                },
            }
        )
    return found
