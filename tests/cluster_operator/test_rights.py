# SPDX-License-Identifier: MIT
"""No right is missing and none too many: with all of them nothing is refused, without any one something is.

Each verb on each resource is taken away in turn, on a real API server, from an account of its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.controller.connection import connect
from kubectl_pacto.controller.manifests.agent_objects import NAME as AGENT
from kubectl_pacto.controller.manifests.operator_arguments import arguments
from kubectl_pacto.controller.manifests.operator_objects import release_objects
from kubectl_pacto.controller.manifests.release_values import complete
from kubectl_pacto.controller.options import Settings, settings
from tests.cluster.api import Api, ApiError, Object
from tests.cluster.fixtures import await_kinds
from tests.cluster.live import Live
from tests.cluster_operator.access import await_rights
from tests.cluster_operator.conftest import OPERATORS
from tests.cluster_operator.walk import OPERATOR, Walk, follow, report

pytestmark = pytest.mark.cluster
RBAC = "rbac.authorization.k8s.io/v1"
WHERE, AGENTS = "rights", "rights-agents"
ALL: dict[str, Any] = {
    "controller": {"enableMetricsObservation": True},
    "nodeAgent": {"enabled": True, "namespace": AGENTS},
}
# kinds that an installation may lack, so that each right is about something
FOREIGN = (
    ("gateway.networking.k8s.io", "HTTPRoute", "httproutes"),
    ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
    ("monitoring.coreos.com", "PodMonitor", "podmonitors"),
)


@dataclass(frozen=True)
class Right:
    """One verb on one resource, in one role; empty: the account that has them all."""

    role: str = ""
    group: str = ""
    resource: str = ""
    verb: str = ""

    def __str__(self) -> str:
        return f"{self.role.removeprefix('pacto-')} {self.verb} {self.resource}" if self.role else "all"


def roles(values: dict[str, Any]) -> list[Object]:
    """The operator's and the agents' roles of an installation."""
    objects = release_objects(values, namespace=OPERATORS)
    return [one for one in objects if one["kind"] in ("Role", "ClusterRole")]


def name_of(role: Object) -> str:
    """A role's name, apart from another's of its name that has a namespace."""
    return f"{role['metadata']['name']}{'/' if 'namespace' in role['metadata'] else ''}"


def rights(values: dict[str, Any]) -> list[Right]:
    """Every verb on every resource."""
    return [
        Right(name_of(role), rule["apiGroups"][0], resource, verb)
        for role in roles(values)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


ROWS = rights(ALL)
# asked of who blocks a deletion where OwnerReferencesPermissionEnforcement is on, as in OpenShift and here:
# the server says it in words of its own
FINALIZERS = Right("pacto-operator-manager", "pacto.trianalab.io", "pactos/finalizers", "update")
BLOCKED = "cannot set blockOwnerDeletion"


def is_whole(right: Right, role: Object) -> bool:
    """Whether the account of a right holds a role as it is: operator and agent are two accounts."""
    is_agents = name_of(role) == f"{AGENT}/"
    is_same = is_agents == (right.role == f"{AGENT}/")
    return not right.role or (is_same and right.role != name_of(role))


def without(role: Object, gone: Right) -> list[Object]:
    """A role's rules but for one right."""
    if name_of(role) != gone.role:
        return list(role["rules"])
    found = []
    for rule in role["rules"]:
        for resource in rule["resources"]:
            is_it = (rule["apiGroups"][0], resource) == (gone.group, gone.resource)
            verbs = [verb for verb in rule["verbs"] if not (is_it and verb == gone.verb)]
            if verbs:
                found.append({"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": verbs})
    return found


class Accounts:
    """An account for each right that is taken away, made at once: an authorizer takes a moment.

    Roles that nothing is taken away from are shared.
    """

    def __init__(
        self, live: Live, folder: Path, values: dict[str, Any], gone: list[Right], prefix: str = "rights"
    ) -> None:
        self.live, self.folder = live, folder
        last: dict[str, list[Object]] = {}
        self.names = {right: f"{prefix}-{number}" for number, right in enumerate(gone)}
        for name in self.names.values():
            metadata = {"name": name, "namespace": OPERATORS}
            live.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        for role in roles(values):
            whole = [name for right, name in self.names.items() if is_whole(right, role)]
            made = [bound(role, role["rules"], prefix, whole)]
            made += [
                bound(role, without(role, right), name, [name])
                for right, name in self.names.items()
                if right.role == name_of(role)
            ]
            for objects in made:
                live.api.apply(*objects)
                if objects[0]["rules"] and objects[1]["subjects"]:
                    last[role["kind"]] = objects
        # an authorizer learns of a kind's objects in their order
        for objects in last.values():
            await_rights(live.api, objects)

    def kubeconfig(self, right: Right) -> str:
        """How to connect as the account that lacks a right."""
        name = self.names[right]
        config: Object = json.loads(self.live.kubeconfig.read_text())
        (self.folder / f"{name}.token").write_text(self.live.token(OPERATORS, name))
        config["users"][0]["user"] = {"tokenFile": str(self.folder / f"{name}.token")}
        path = self.folder / name
        path.write_text(json.dumps(config))
        return str(path)


def bound(role: Object, rules: list[Object], prefix: str, names: list[str]) -> list[Object]:
    """A role like another with these rules, and who holds it."""
    kind = role["kind"]
    where = {"namespace": role["metadata"]["namespace"]} if kind == "Role" else {}
    metadata = {"name": f"{prefix}-{role['metadata']['name']}", **where}
    reference = {"apiGroup": RBAC.partition("/")[0], "kind": kind, "name": metadata["name"]}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": OPERATORS} for name in names]
    return [
        {"apiVersion": RBAC, "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": RBAC,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": subjects,
        },
    ]


def crd(group: str, kind: str, plural: str) -> Object:
    """A kind of somebody else's, without a schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def prepare(api: Api) -> None:
    """Namespaces, what a Pacto binds, and a node: without any, nothing is cleaned up."""
    api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "rights"}})
    for name in (WHERE, AGENTS):
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    metadata = {"name": "bound", "namespace": WHERE}
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "y: 1"}})
    api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "t"}})


@pytest.fixture(scope="module")
def foreign(api: Api, api_server: Live) -> Iterator[None]:
    """The kinds that an installation may lack."""
    made = [crd(*one) for one in FOREIGN]
    api.apply(*made)
    await_kinds(api_server, made)
    yield
    for name in [one["metadata"]["name"] for one in made]:
        api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)


@pytest.fixture(scope="module")
def accounts(
    api_server: Live,
    api: Api,
    foreign: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Accounts:
    """The accounts of all rows, and one that lacks nothing."""
    prepare(api)
    return Accounts(api_server, tmp_path_factory.mktemp("rights"), ALL, [Right(), *ROWS])


def told(values: dict[str, Any], kubeconfig: str) -> Settings:
    """The settings that an installation gives its operator."""
    given = [*arguments(complete(values)), "--kubeconfig", kubeconfig, "--metrics-bind-address=0"]
    found = settings(given, {"POD_NAMESPACE": OPERATORS, "POD_NAME": "rights"})
    return replace(found, node_object_age=0.0)


def steps_of(right: Right) -> tuple[Callable[[Walk], None], ...]:
    """What to do that such a right could be for; the account of all does everything."""
    if not right.role:
        return (follow, *OPERATOR, report)
    if right.role == f"{AGENT}/":
        return (report,)
    return (*OPERATOR, follow) if right.verb in ("list", "watch") else OPERATOR


def walk(
    api: Api, kubeconfig: str, values: dict[str, Any], steps: tuple[Callable[[Walk], None], ...]
) -> list[str]:
    """What is refused on these steps."""
    name = f"walk-{secrets.token_hex(4)}"
    return Walk(api, connect(kubeconfig), told(values, kubeconfig), WHERE, name).run(*steps)


def test_with_all_rights_nothing_is_refused(api: Api, accounts: Accounts) -> None:
    assert walk(api, accounts.kubeconfig(Right()), ALL, steps_of(Right())) == []


@pytest.mark.parametrize("right", ROWS, ids=str)
def test_without_a_right_something_is_refused_and_said(api: Api, accounts: Accounts, right: Right) -> None:
    refused = walk(api, accounts.kubeconfig(right), ALL, steps_of(right))
    words = f'cannot {right.verb} resource "{right.resource}" in API group "{right.group}"'
    words = BLOCKED if right == FINALIZERS else words
    assert any(words in text.replace('\\"', '"') for text in refused), refused


def test_the_right_that_only_some_servers_ask_for_is_among_them() -> None:
    assert FINALIZERS in ROWS


def test_in_one_watched_namespace_a_role_is_enough(
    api: Api, api_server: Live, accounts: Accounts, tmp_path: Path
) -> None:
    values = {"controller": {"enableMetricsObservation": True, "watchNamespace": WHERE}}
    assert [role["kind"] for role in roles(values)] == ["Role", "Role"]
    label = Right("pacto-operator-manager/", "", "namespaces", "get")
    assert label in rights(values)
    made = Accounts(api_server, tmp_path, values, [Right(), label], "watched")
    steps = (follow, OPERATOR[0], OPERATOR[1], OPERATOR[2])
    for right, refusals in ((Right(), 0), (label, 1)):
        refused = walk(api, made.kubeconfig(right), values, steps)
        assert bool(refused) is bool(refusals), refused
        assert all('cannot get resource "namespaces"' in text for text in refused)


def test_outside_of_a_watched_namespace_it_may_nothing(api_server: Live, api: Api, tmp_path: Path) -> None:
    prepare(api)
    values = {"controller": {"watchNamespace": WHERE}}
    Accounts(api_server, tmp_path, values, [Right()], "narrow")
    account = api_server.as_token(api_server.token(OPERATORS, "narrow-0"))
    for attempt in (
        lambda: account.items("v1", "Service", "default"),
        lambda: account.items("v1", "Namespace"),
        lambda: account.items("pacto.trianalab.io/v1alpha1", "Pacto"),
        lambda: account.get("v1", "Secret", "bound", "default"),
    ):
        with pytest.raises(ApiError) as caught:
            attempt()
        assert caught.value.status == 403
