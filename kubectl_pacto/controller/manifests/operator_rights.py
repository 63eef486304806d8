# SPDX-License-Identifier: MIT
"""What the operator may do: one rule for each thing it does, and none that grants rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_pacto.model.pacto import GROUP

FOLLOW: Final = ["list", "watch"]
Rule = dict[str, Any]


def _rule(group: str, resources: list[str], verbs: list[str]) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def manager_rules(values: Mapping[str, Any]) -> list[Rule]:
    """Across the cluster: follow what checks read, write statuses, tell events."""
    rules = [
        _rule(GROUP, ["pactos"], FOLLOW),
        _rule(GROUP, ["pactorevisions"], ["create"]),
        _rule(GROUP, ["pactos/status", "pactorevisions/status"], ["patch"]),
        # owner references that block deletion ask for it where the server checks them
        _rule(GROUP, ["pactos/finalizers"], ["update"]),
        _rule("", ["services", "pods", "namespaces"], FOLLOW),
        # of a bound Secret only the metadata is asked for; a pull secret's data is read
        _rule("", ["configmaps", "secrets"], ["get"]),
        _rule("", ["events"], ["create"]),
        _rule("discovery.k8s.io", ["endpointslices"], FOLLOW),
        _rule("apps", ["deployments", "statefulsets", "replicasets"], FOLLOW),
        _rule("batch", ["jobs", "cronjobs"], FOLLOW),
        _rule("networking.k8s.io", ["ingresses"], FOLLOW),
        _rule("gateway.networking.k8s.io", ["httproutes"], FOLLOW),
    ]
    if values["controller"]["enableMetricsObservation"]:
        rules.append(_rule("monitoring.coreos.com", ["servicemonitors", "podmonitors"], FOLLOW))
    if values["nodeAgent"]["enabled"]:
        rules.append(_rule("", ["nodes"], ["list"]))
    return rules


def election_role() -> list[Rule]:
    """In the operator's namespace: hold the Lease of the leader."""
    return [_rule("coordination.k8s.io", ["leases"], ["get", "create", "update"])]


def agent_role(*, is_managed: bool) -> list[Rule]:
    """In the agents' namespace: read their evidence; where they are ours, run them and clean up."""
    gone = ["delete"] if is_managed else []
    rules = [
        _rule("coordination.k8s.io", ["leases"], [*FOLLOW, *gone]),
        _rule(GROUP, ["noderuntimeobservations"], ["get", "list", *gone]),
    ]
    if is_managed:
        rules.append(_rule("apps", ["daemonsets"], ["get", "create", "update", "delete"]))
    return rules
