# SPDX-License-Identifier: MIT
"""Everything that is installed, as a function of values, in the order in which it must exist.

The operator gets no right to grant rights: what it needs in the agents' namespace is given here. The
chart makes the same objects; tests/chart compares them one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import yaml

from kubectl_pacto.controller.manifests import agent_objects, operator_network, operator_rights
from kubectl_pacto.controller.manifests.operator_pod import deployment
from kubectl_pacto.controller.manifests.operator_rights import rules
from kubectl_pacto.controller.manifests.release_values import (
    agent_values,
    complete,
    full_name,
    require_consistent,
)

NAME: Final = "pacto-operator"
LABELS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "pacto"}
RBAC: Final = "rbac.authorization.k8s.io"
RESTRICTED: Final = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}
CRDS: Final = ("pactos", "pactorevisions", "noderuntimeobservations")
Object = dict[str, Any]


def release_objects(values: Mapping[str, Any], *, namespace: str) -> list[Object]:
    """All objects of an installation. Raises UsageError naming a value that is none."""
    given = complete(values)
    require_consistent(given, namespace)
    name = full_name(given)
    found = [*(crds() if given["crds"]["enabled"] else ()), operator_namespace(namespace)]
    if given["nodeAgent"]["enabled"]:
        found += agent_objects.before_the_agent(agent_values(given))
    found += _identity(given, name, namespace)
    found.append(deployment(given, name, namespace, LABELS))
    if given["metrics"]["enabled"]:
        found += operator_network.metrics(given, name, namespace, LABELS)
    if given["networkPolicy"]["enabled"]:
        found += operator_network.policies(given, name, namespace, LABELS)
    return found


def crds() -> list[Object]:
    """The CustomResourceDefinitions, as generated."""
    folder = resources.files(__package__) / "crds"
    return [yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8")) for name in CRDS]


def operator_namespace(name: str) -> Object:
    """The operator's namespace as it is made where there is none; one that is there keeps its own level."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**LABELS, **RESTRICTED}},
    }


def account_name(values: Mapping[str, Any], name: str) -> str:
    """The operator's ServiceAccount."""
    return str(values["serviceAccount"]["name"] or name)


def _identity(values: Object, name: str, namespace: str) -> list[Object]:
    account = values["serviceAccount"]
    subject = {
        "kind": "ServiceAccount",
        "name": account_name(values, name),
        "namespace": namespace,
    }
    found: list[Object] = []
    if account["create"]:
        metadata = {"name": subject["name"], "namespace": namespace, "labels": dict(LABELS)}
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
    return found + _rights(values, name, namespace, subject)


def _rights(values: Object, name: str, namespace: str, subject: Object) -> list[Object]:
    everywhere = rules(operator_rights.EVERYWHERE, values)
    watched = rules(operator_rights.WATCHED, values)
    found: list[Object] = []
    if where := str(values["controller"]["watchNamespace"]):
        if everywhere:
            found += _bound(f"{name}-manager", "", everywhere, subject)
        found += _bound(f"{name}-manager", where, watched, subject)
    else:
        found += _bound(f"{name}-manager", "", [*watched, *everywhere], subject)
    if values["metrics"]["secure"]:
        found.append(_metrics_reader(f"{name}-metrics-reader"))
    if values["leaderElection"]["enabled"]:
        election = rules(operator_rights.ELECTION, values)
        found += _bound(f"{name}-leader-election", namespace, election, subject)
    if where := evidence_namespace(values):
        is_managed = values["nodeAgent"]["enabled"]
        rights = operator_rights.MANAGED if is_managed else operator_rights.EVIDENCE
        found += _bound(f"{name}-node-agent", where, rules(rights, values), subject)
    return found


def _metrics_reader(name: str) -> Object:
    """What may be bound to who scrapes; nobody is bound here."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }


def evidence_namespace(values: Mapping[str, Any]) -> str:
    """Where kernel evidence is read; empty while it is off."""
    given = str(values["controller"]["kernelEvidence"]["namespace"])
    return given or (str(values["nodeAgent"]["namespace"]) if values["nodeAgent"]["enabled"] else "")


def _bound(name: str, namespace: str, granted: list[Object], subject: Object) -> list[Object]:
    """A Role with its binding, or of no namespace a ClusterRole with its."""
    scope = "" if namespace else "Cluster"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": f"{scope}Role", "metadata": metadata, "rules": granted},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": f"{scope}RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": RBAC, "kind": f"{scope}Role", "name": name},
            "subjects": [dict(subject)],
        },
    ]
