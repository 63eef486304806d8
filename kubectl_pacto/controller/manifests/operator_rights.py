# SPDX-License-Identifier: MIT
"""What the operator may do: one rule for each thing it does, and none that grants rights.

`make gen` writes the chart's rules from the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.controller.manifests.operator_arguments import value_at
from kubectl_pacto.model.group import GROUP

FOLLOW: Final = ("list", "watch")
Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Right:
    """A rule, and the dotted paths of the values that it depends on, or that make it needless."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    when: str = ""
    unless: str = ""

    @property
    def rule(self) -> Rule:
        """As RBAC writes it."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


# where Pactos are: in the watched namespace, or in all
WATCHED: Final = (
    Right(GROUP, ("pactos",), FOLLOW),
    # deleted are only those of a Pacto's contracts that are long superseded
    Right(GROUP, ("pactorevisions",), (*FOLLOW, "create", "delete")),
    Right(GROUP, ("pactos/status", "pactorevisions/status"), ("patch",)),
    # owner references that block deletion ask for it where the server checks them
    Right(GROUP, ("pactos/finalizers",), ("update",)),
    Right("", ("services", "pods"), FOLLOW),
    # of a bound Secret only the metadata is asked for; a pull secret's data is read
    Right("", ("configmaps", "secrets"), ("get",)),
    Right("", ("events",), ("create",)),
    Right("discovery.k8s.io", ("endpointslices",), FOLLOW),
    Right("apps", ("deployments", "statefulsets", "replicasets"), FOLLOW),
    Right("batch", ("jobs", "cronjobs"), FOLLOW),
    Right("networking.k8s.io", ("ingresses",), FOLLOW),
    Right("gateway.networking.k8s.io", ("httproutes",), FOLLOW),
    Right(
        "monitoring.coreos.com",
        ("servicemonitors", "podmonitors"),
        FOLLOW,
        when="controller.enableMetricsObservation",
    ),
    # a namespace's label puts its pods into a mesh; a Role can grant to ask for its own
    Right("", ("namespaces",), ("get",), when="controller.watchNamespace"),
)
# of kinds that have no namespace
EVERYWHERE: Final = (
    Right("", ("namespaces",), FOLLOW, unless="controller.watchNamespace"),
    Right("", ("nodes",), ("list",), when="nodeAgent.enabled"),
    # whose token it is that asks for metrics, and whether they may have them
    Right("authentication.k8s.io", ("tokenreviews",), ("create",), when="metrics.secure"),
    Right("authorization.k8s.io", ("subjectaccessreviews",), ("create",), when="metrics.secure"),
)
# in the operator's namespace: hold the Lease of the leader
ELECTION: Final = (Right("coordination.k8s.io", ("leases",), ("get", "create", "update")),)
# in the agents' namespace: read their evidence; where they are ours, run them and clean up
EVIDENCE: Final = (
    Right("coordination.k8s.io", ("leases",), FOLLOW),
    Right(GROUP, ("noderuntimeobservations",), ("get", "list")),
)
MANAGED: Final = (
    Right("coordination.k8s.io", ("leases",), (*FOLLOW, "delete")),
    Right(GROUP, ("noderuntimeobservations",), ("get", "list", "delete")),
    Right("apps", ("daemonsets",), ("get", "create", "update", "delete")),
)


def rules(rights: tuple[Right, ...], values: Mapping[str, Any]) -> list[Rule]:
    """The rules that these values ask for."""
    return [
        one.rule
        for one in rights
        if (not one.when or value_at(values, one.when)) and not (one.unless and value_at(values, one.unless))
    ]
