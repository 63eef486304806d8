# SPDX-License-Identifier: MIT
"""Rights that were just given: the API server's authorizer follows roles and bindings, a moment behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from tests.cluster.api import Api, Object
from tests.cluster.fixtures import wait_until

SECONDS: Final = 60
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
Named = tuple[str, str, str]


def await_rights(api: Api, objects: Sequence[Object]) -> None:
    """Return once who is bound to the roles among these objects may do what they say."""
    roles = {_named(one): one for one in objects if one["kind"] in ("Role", "ClusterRole")}
    for binding in objects:
        if not binding["kind"].endswith("RoleBinding"):
            continue
        where = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        role = roles.get((reference["kind"], where if reference["kind"] == "Role" else "", reference["name"]))
        for rule in role["rules"] if role else ():
            # of a binding, all subjects become known at once
            asked = partial(_may, api, binding["subjects"][-1], rule, where)
            assert wait_until(asked, SECONDS), (binding["metadata"], rule)


def _named(one: Object) -> Named:
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def _may(api: Api, subject: Object, rule: Object, namespace: str) -> bool:
    """Whether an account has a rule's last right."""
    spec: dict[str, Any] = {"user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}"}
    if "nonResourceURLs" in rule:
        spec["nonResourceAttributes"] = {"path": rule["nonResourceURLs"][-1], "verb": rule["verbs"][-1]}
    else:
        resource, _, below = rule["resources"][-1].partition("/")
        spec["resourceAttributes"] = {
            "namespace": namespace,
            "group": rule["apiGroups"][-1],
            "resource": resource,
            "subresource": below,
            "name": (rule.get("resourceNames") or [""])[-1],
            "verb": rule["verbs"][-1],
        }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(json.loads(api.raw("POST", REVIEWS, json.dumps(body)))["status"]["allowed"])
