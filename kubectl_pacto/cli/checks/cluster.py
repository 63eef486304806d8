# SPDX-License-Identifier: MIT
"""Before an installation: can this cluster take it, and may this user do it?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubectl_pacto.cli.checks import Check, Group, Result, Scope
from kubectl_pacto.collect.fleet import NONE, Reading, list_raw
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound

OLDEST: Final = (1, 30)
OLDEST_KERNEL: Final = (5, 8)
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# what an installation creates: API group, resource, whether for the node agents alone
RIGHTS: Final = (
    ("apiextensions.k8s.io", "customresourcedefinitions", False),
    ("", "namespaces", False),
    ("", "serviceaccounts", False),
    ("rbac.authorization.k8s.io", "clusterroles", False),
    ("rbac.authorization.k8s.io", "clusterrolebindings", False),
    ("rbac.authorization.k8s.io", "roles", False),
    ("rbac.authorization.k8s.io", "rolebindings", False),
    ("apps", "deployments", False),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", True),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", True),
)


def numbers(text: str) -> tuple[int, int]:
    """Major and minor of a version text such as v1.31.2-eks-1 or 6.8.0-45-generic; zeros for none."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def check_api(scope: Scope) -> Iterator[Check]:
    """The API server answers, and is new enough."""
    found = scope.session.client.get("/version")
    version = str(found.get("gitVersion") or "")
    yield Check("api-reachable", Result.OK, f"the API server {scope.session.server} answers")
    is_new = numbers(version) >= OLDEST
    yield Check(
        "api-version",
        Result.OK if is_new else Result.FAILED,
        f"Kubernetes {version} is 1.30 or later",
        "" if is_new else "admission policies and the node claim of tokens need 1.30",
        "" if is_new else "upgrade the cluster",
    )


def check_rights(scope: Scope) -> Iterator[Check]:
    """This user may create what an installation creates."""
    denied = [
        f"create {resource}.{group}" if group else f"create {resource}"
        for group, resource, for_agent in RIGHTS
        if (scope.wants_agent or not for_agent) and not _may(scope.session.client, group, resource)
    ]
    yield Check(
        "install-rights",
        Result.FAILED if denied else Result.OK,
        "this user may install",
        f"not allowed: {', '.join(denied)}" if denied else "",
        "let a cluster administrator install, or give the objects to one: kubectl pacto install -o yaml"
        if denied
        else "",
    )


def _may(client: Client, group: str, resource: str) -> bool:
    attributes = {"group": group, "resource": resource, "verb": "create"}
    body: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool((client.post(REVIEWS, body).get("status") or {}).get("allowed"))


def check_policies(scope: Scope) -> Iterator[Check]:
    """Admission policies are served: without them an agent could write another node's object."""
    if not scope.wants_agent:
        return
    try:
        served = {one["name"] for one in scope.session.client.get(POLICIES).get("resources") or ()}
    except ApiNotFound:
        served = set()
    is_served = "validatingadmissionpolicies" in served
    yield Check(
        "admission-policies",
        Result.OK if is_served else Result.FAILED,
        "ValidatingAdmissionPolicy v1 is served",
        "" if is_served else "node agents need it to be kept to their own node's objects",
        "" if is_served else "turn the API group admissionregistration.k8s.io/v1 on",
    )


def check_nodes(scope: Scope) -> Iterator[Check]:
    """Nodes can run the agent, as far as the API tells."""
    if not scope.wants_agent:
        return
    reading = Reading()
    nodes = reading.optional("nodes", lambda: list_raw(scope.session.client, "/api/v1/nodes"), NONE)
    if reading.refused:
        yield Check("node-kernels", Result.SKIPPED, "kernels are 5.8 or later", reading.refused["nodes"])
        return
    linux = [raw for raw in nodes if _info(raw, "operatingSystem", "linux") == "linux"]
    old = [
        f"{raw['metadata']['name']} ({_info(raw, 'kernelVersion', 'unknown')})"
        for raw in linux
        if numbers(_info(raw, "kernelVersion", "")) < OLDEST_KERNEL
    ]
    yield Check(
        "node-kernels",
        Result.WARNING if old else Result.OK,
        f"the kernels of {len(linux)} Linux nodes are 5.8 or later",
        f"too old: {', '.join(old)}" if old else "",
        "pods of these nodes stay without kernel evidence until their kernels are newer" if old else "",
    )
    others = len(nodes) - len(linux)
    if others:
        what = "all nodes run Linux"
        yield Check("node-systems", Result.WARNING, what, f"{others} do not: no agent runs there")


def _info(raw: dict[str, Any], key: str, otherwise: str) -> str:
    return str((raw.get("status") or {}).get("nodeInfo", {}).get(key) or otherwise)


BEFORE: Final[tuple[Group, ...]] = (
    ("Kubernetes API", "api-reachable", check_api),
    ("Rights", "install-rights", check_rights),
    ("Admission", "admission-policies", check_policies),
    ("Nodes", "node-kernels", check_nodes),
)
