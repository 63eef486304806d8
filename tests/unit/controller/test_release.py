# SPDX-License-Identifier: MIT
"""What is installed: values become objects, options come back as they went in, rights grant no rights."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.controller.manifests.operator_objects import release_objects
from kubectl_pacto.controller.manifests.operator_pod import arguments
from kubectl_pacto.controller.manifests.release_values import DEFAULTS, agent_values, complete
from kubectl_pacto.controller.options import settings
from kubectl_pacto.errors import UsageError

NAMESPACE = "pacto-operator-system"
POD = {"POD_NAMESPACE": NAMESPACE, "POD_NAME": "pod-1"}
AGENT = {"nodeAgent": {"enabled": True}}


def kinds(values: dict[str, Any]) -> list[str]:
    return [one["kind"] for one in release_objects(values, namespace=NAMESPACE)]


def deployment(values: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in release_objects(values, namespace=NAMESPACE) if one["kind"] == "Deployment"]
    return found


def test_what_must_be_there_first_comes_first() -> None:
    found = kinds(AGENT)
    assert found[:4] == ["CustomResourceDefinition"] * 3 + ["Namespace"]
    assert found.index("ValidatingAdmissionPolicyBinding") < found.index("Deployment")
    assert max(place for place, kind in enumerate(found) if "Role" in kind) < found.index("Deployment")
    assert "DaemonSet" not in found


def test_without_the_agent_nothing_of_it_is_there() -> None:
    objects = release_objects({}, namespace=NAMESPACE)
    assert {one["metadata"].get("namespace", NAMESPACE) for one in objects} == {NAMESPACE}
    assert "ValidatingAdmissionPolicy" not in kinds({})


def test_the_operator_is_restricted_and_the_agents_namespace_is_not() -> None:
    levels = {
        one["metadata"]["name"]: one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for one in release_objects(AGENT, namespace=NAMESPACE)
        if one["kind"] == "Namespace"
    }
    assert levels == {NAMESPACE: "restricted", "pacto-node-agent": "privileged"}
    context = deployment({})["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["runAsNonRoot"] is True


def test_no_right_grants_rights() -> None:
    rules = [
        rule
        for one in release_objects(AGENT, namespace=NAMESPACE)
        if one["kind"] in ("Role", "ClusterRole")
        for rule in one["rules"]
    ]
    for rule in rules:
        assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])
        assert "rbac.authorization.k8s.io" not in rule["apiGroups"]
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])
        if "secrets" in rule["resources"]:
            assert rule["verbs"] == ["get"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        AGENT,
        {
            "nodeAgent": {
                "enabled": True, "namespace": "x", "publishInterval": "10s", "mapper": "iter",
                "sysResource": True, "resources": {"limits": {"cpu": "1"}}, "tolerations": [],
                "nodeSelector": {"a": "b"}, "image": "i:1", "maxUnavailable": "1",
                "priorityClassName": "high", "imagePullPolicy": "Never",
            }
        },
    ],
)  # fmt: skip
def test_the_agents_values_arrive_at_the_operator_as_they_were(values: dict[str, Any]) -> None:
    whole = complete(values)
    told = settings(arguments(whole), POD)
    if whole["nodeAgent"]["enabled"]:
        assert told.agent == agent_values(whole)
    else:
        assert told.agent is None


def test_the_controllers_values_arrive() -> None:
    values = {
        "controller": {
            "watchNamespace": "w",
            "stabilizationWindow": "1m",
            "enableProbing": True,
            "kernelEvidence": {"namespace": "k", "staleness": "45s", "meshProxies": ["envoy"]},
        },
        "metrics": {"enabled": False},
        "leaderElection": {"enabled": False},
    }
    told = settings(arguments(complete(values)), POD)
    assert (told.watch_namespace, told.checks.window, told.probing) == ("w", 60, True)
    assert told.checks.kernel.namespace == "k"
    assert told.checks.kernel.staleness == 45
    assert told.checks.kernel.mesh_proxies == ("envoy",)
    assert told.metrics_address == ""
    assert not told.leader_elect


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"nodeAgnt": {}}, "nodeAgnt is no value"),
        ({"nodeAgent": {"enable": True}}, "nodeAgent.enable is no value"),
        ({"nodeAgent": {"enabled": "yes"}}, "nodeAgent.enabled must be true or false"),
        ({"controller": []}, "controller must be a mapping"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        release_objects(values, namespace=NAMESPACE)


def test_free_mappings_replace_the_default_as_a_whole() -> None:
    found = complete({"resources": {"limits": {"cpu": "1"}}})
    assert found["resources"] == {"limits": {"cpu": "1"}}
    assert DEFAULTS["resources"]["requests"]


def test_evidence_of_agents_that_you_run_is_read_only() -> None:
    values = {"controller": {"kernelEvidence": {"namespace": "mine"}}}
    (role,) = [
        one
        for one in release_objects(values, namespace=NAMESPACE)
        if one["kind"] == "Role" and one["metadata"]["namespace"] == "mine"
    ]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
