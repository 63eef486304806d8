# SPDX-License-Identifier: MIT
"""What is installed: values become objects, options come back as they went in, rights grant no rights."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.controller.manifests.agent_objects import daemon_set
from kubectl_pacto.controller.manifests.operator_arguments import (
    AGENT_SWITCHES,
    AGENT_TOLD,
    CERTIFICATE,
    SWITCHES,
    TOLD,
    arguments,
)
from kubectl_pacto.controller.manifests.operator_objects import release_objects
from kubectl_pacto.controller.manifests.release_values import DEFAULTS, agent_values, complete
from kubectl_pacto.controller.options import parser, settings
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
        ({"replicaCount": 0}, "replicaCount must be at least 1"),
        ({"metrics": {"service": {"port": 70000}}}, "metrics.service.port must be at most 65535"),
        ({"nodeAgent": {"mapper": "fast"}}, "nodeAgent.mapper must be one of auto, proc, iter"),
        (
            {"nodeAgent": {"publishInterval": "30"}},
            "nodeAgent.publishInterval must be a duration of 1s to 24h such as 30s, 2m or 1h30m, not '30'",
        ),
        ({"nodeAgent": {"publishInterval": "100ms"}}, "nodeAgent.publishInterval must be a duration of 1s"),
        (
            {"nodeAgent": {"resyncInterval": "48h"}},
            "nodeAgent.resyncInterval must be a duration of 1s to 24h",
        ),
        ({"nodeAgent": {"maxUnavailable": 0}}, "nodeAgent.maxUnavailable must be at least 1"),
        ({"nodeAgent": {"maxUnavailable": "ten"}}, "nodeAgent.maxUnavailable must be a number of nodes"),
        ({"nodeAgent": {"namespace": ""}}, "nodeAgent.namespace must be a Kubernetes name"),
        ({"nodeAgent": {"resources": {"limit": {}}}}, "nodeAgent.resources.limit is no value"),
        (
            {"resources": {"limits": {"cpu": "zzz"}}},
            "resources.limits.cpu must be a quantity such as 500m, 2 or 256Mi, not 'zzz'",
        ),
        (
            {"nodeAgent": {"resources": {"requests": {"memory": "64MB"}}}},
            "requests.memory must be a quantity",
        ),
        ({"resources": {"limits": {"cpu": "-1"}}}, "resources.limits.cpu must be a quantity"),
        ({"resources": {"limits": {"cpu": -1}}}, "resources.limits.cpu must be at least 0"),
        ({"resources": {"limits": {"cpu": True}}}, "resources.limits.cpu must be text or a number"),
        ({"tolerations": [{"effects": "x"}]}, "tolerations.0.effects is no value"),
        ({"imagePullSecrets": ["x"]}, "imagePullSecrets.0 must be a mapping"),
        ({"controller": {"kernelEvidence": {"staleness": "0s"}}}, "staleness must be a duration above"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        release_objects(values, namespace=NAMESPACE)


@pytest.mark.parametrize(
    "text",
    ["1", "0.5", ".5", "2.", "+1", "500m", "100n", "5u", "3k", "1M", "2G", "1T", "1P", "1E", "1Ki", "256Mi",
     "4Gi", "1Ti", "1Pi", "1Ei", "1e3", "12E6", "1e-3", "1E+2", 1, 0.5, 0],
)  # fmt: skip
def test_every_quantity_of_kubernetes_is_one(text: str | float) -> None:
    limits = {"cpu": text, "example.com/gpu": "1"}
    assert complete({"resources": {"limits": limits}})["resources"]["limits"]["cpu"] == text


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "m", "1mm", "1K", "1ki", "1KiB", "1,5", "1.2.3", ".", "e3", "1e", "1e1.5", "0x1"],
)
def test_what_kubernetes_takes_for_no_quantity_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"nodeAgent\.resources\.limits\.memory must be a quantity"):
        complete({"nodeAgent": {"resources": {"limits": {"memory": text}}}})


def test_mappings_are_laid_over_the_defaults_as_helm_does_it() -> None:
    given = {"limits": {"cpu": "1", "memory": None}, "requests": None}
    assert complete({"resources": given})["resources"] == {"limits": {"cpu": "1"}}
    assert complete({"podLabels": {"a": "b"}})["podLabels"] == {"a": "b"}
    assert DEFAULTS["resources"]["requests"]


def test_null_brings_a_default_back() -> None:
    assert complete({"nodeAgent": {"mapper": None, "tolerations": None}, "metrics": None}) == DEFAULTS


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replicaCount": 2, "leaderElection": {"enabled": False}}, "replicaCount above 1 needs"),
        ({"nodeAgent": {"enabled": True, "namespace": NAMESPACE}}, "nodeAgent.namespace must not be"),
        (
            {"nodeAgent": {"enabled": True}, "controller": {"kernelEvidence": {"namespace": "mine"}}},
            "controller.kernelEvidence.namespace is for node agents that you run yourself",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        release_objects(values, namespace=NAMESPACE)


def test_in_one_watched_namespace_rights_end_there_but_for_kinds_without_a_namespace() -> None:
    values = {"controller": {"watchNamespace": "shop"}, "nodeAgent": {"enabled": True}}
    objects = release_objects(values, namespace=NAMESPACE)
    (everywhere,) = [one for one in objects if one["kind"] == "ClusterRole"]
    granted = {resource: rule["verbs"] for rule in everywhere["rules"] for resource in rule["resources"]}
    assert granted == {"nodes": ["list"]}
    (watched,) = [
        one for one in objects if one["metadata"].get("namespace") == "shop" and one["kind"] == "Role"
    ]
    (all_of_them,) = [
        one for one in release_objects(AGENT, namespace=NAMESPACE) if one["kind"] == "ClusterRole"
    ]
    (*same, namespaces) = watched["rules"]
    assert namespaces == {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    (*all_but_two, follow, nodes) = all_of_them["rules"]
    assert (same, [nodes]) == (all_but_two, everywhere["rules"])
    assert follow == {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}


def test_a_watched_namespace_without_agents_needs_no_right_outside_of_it() -> None:
    objects = release_objects({"controller": {"watchNamespace": "shop"}}, namespace=NAMESPACE)
    assert not [one for one in objects if one["kind"].startswith("ClusterRole")]


def test_metrics_over_tls_come_with_their_certificate_and_the_right_to_ask_who_reads() -> None:
    secure = {"metrics": {"secure": True, "certificate": {"secretName": "tls", "keyName": "key.pem"}}}
    told = settings(arguments(complete(secure)), POD)
    assert told.metrics_certificate is not None
    pod = deployment(secure)["spec"]["template"]["spec"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == told.metrics_certificate.folder
    assert pod["volumes"] == [{"name": mount["name"], "secret": {"secretName": "tls"}}]
    assert [path.name for path in told.metrics_certificate.paths] == ["tls.crt", "key.pem"]
    objects = release_objects(secure, namespace=NAMESPACE)
    granted = {
        resource: rule["verbs"]
        for one in objects
        if one["kind"] == "ClusterRole"
        for rule in one["rules"]
        for resource in rule.get("resources", ())
    }
    assert granted["tokenreviews"] == granted["subjectaccessreviews"] == ["create"]
    bound = {one["roleRef"]["name"] for one in objects if one["kind"] == "ClusterRoleBinding"}
    assert "pacto-operator-metrics-reader" in {one["metadata"]["name"] for one in objects} - bound


def test_every_option_of_the_operator_has_a_value() -> None:
    tables = (*SWITCHES, *TOLD, *AGENT_SWITCHES, *AGENT_TOLD, *CERTIFICATE)
    reached = {one.option for one in tables}
    reached |= {"--metrics-bind-address", "--enable-node-agent", "--node-agent-values", "--metrics-cert-path"}
    # where to connect and what it is: never a matter of an installation; the port of probes is the pod's
    reached |= {"--kubeconfig", "--version", "--help", "--health-probe-bind-address"}
    options = {
        text
        for action in parser()._actions
        for text in action.option_strings
        if text.startswith("--") and not text.startswith("--no-")
    }
    assert reached == options


def test_secrets_to_pull_the_agent_with_reach_its_pods() -> None:
    values = complete({"nodeAgent": {"enabled": True, "imagePullSecrets": [{"name": "registry"}]}})
    agent = settings(arguments(values), POD).agent
    assert agent is not None
    assert daemon_set(agent)["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_evidence_of_agents_that_you_run_is_read_only() -> None:
    values = {"controller": {"kernelEvidence": {"namespace": "mine"}}}
    (role,) = [
        one
        for one in release_objects(values, namespace=NAMESPACE)
        if one["kind"] == "Role" and one["metadata"]["namespace"] == "mine"
    ]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
