# SPDX-License-Identifier: MIT
"""What is no value is refused by both installers, and both name it; the chart documents every value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.controller.manifests.release_values import DEFAULTS
from tests.support.helm import CHART, NAMESPACE, Helm
from tests.support.releases import SETS
from tests.support.sources import ROOT

Plugin = Callable[[Mapping[str, Any]], tuple[int, str, str]]

# values, where Helm says it is wrong (a JSON pointer and the name), how the plugin calls it
WRONG: list[tuple[dict[str, Any], tuple[str, str], str]] = [
    ({"nodeAgnt": {}}, ("at ''", "nodeAgnt"), "nodeAgnt"),
    ({"nodeAgent": {"bogus": 1}}, ("at '/nodeAgent'", "bogus"), "nodeAgent.bogus"),
    ({"nodeAgent": {"enabled": "yes"}}, ("at '/nodeAgent/enabled'", "boolean"), "nodeAgent.enabled"),
    ({"nodeAgent": {"mapper": "fast"}}, ("at '/nodeAgent/mapper'", "'iter'"), "nodeAgent.mapper"),
    (
        {"nodeAgent": {"publishInterval": "30"}},
        ("at '/nodeAgent/publishInterval'", "does not match"),
        "nodeAgent.publishInterval",
    ),
    (
        {"nodeAgent": {"resyncInterval": "0s"}},
        ("at '/nodeAgent/resyncInterval'", "does not match"),
        "nodeAgent.resyncInterval",
    ),
    (
        {"nodeAgent": {"maxUnavailable": 0}},
        ("at '/nodeAgent/maxUnavailable'", "minimum"),
        "nodeAgent.maxUnavailable",
    ),
    ({"nodeAgent": {"namespace": "A_b"}}, ("at '/nodeAgent/namespace'", "A_b"), "nodeAgent.namespace"),
    (
        {"nodeAgent": {"resources": {"limit": {}}}},
        ("at '/nodeAgent/resources'", "limit"),
        "nodeAgent.resources.limit",
    ),
    (
        {"nodeAgent": {"seccompProfile": "Localhost"}},
        ("at '/nodeAgent/seccompProfile'", "Unconfined"),
        "nodeAgent.seccompProfile",
    ),
    (
        {"controller": {"kernelEvidence": {"staleness": "0s"}}},
        ("at '/controller/kernelEvidence/staleness'", "[1-9]"),
        "controller.kernelEvidence.staleness",
    ),
    ({"controller": {"watchNamespace": 7}}, ("at '/controller/watchNamespace'", "string"), "watchNamespace"),
    (
        {"metrics": {"service": {"port": 0}}},
        ("at '/metrics/service/port'", "minimum"),
        "metrics.service.port",
    ),
    ({"nameOverride": "1st"}, ("at '/nameOverride'", "1st"), "nameOverride"),
    ({"replicaCount": 0}, ("at '/replicaCount'", "minimum"), "replicaCount"),
    ({"image": {"repository": ""}}, ("at '/image/repository'", "minLength"), "image.repository"),
    ({"image": {"pullPolicy": "Sometimes"}}, ("at '/image/pullPolicy'", "Always"), "image.pullPolicy"),
    ({"imagePullSecrets": ["x"]}, ("at '/imagePullSecrets/0'", "object"), "imagePullSecrets.0"),
    ({"tolerations": [{"effects": "x"}]}, ("at '/tolerations/0'", "effects"), "tolerations.0.effects"),
    (
        {"resources": {"limits": {"cpu": "zzz"}}},
        ("at '/resources/limits/cpu'", "zzz"),
        "resources.limits.cpu",
    ),
    (
        {"resources": {"limits": {"cpu": -1}}},
        ("at '/resources/limits/cpu'", "minimum"),
        "resources.limits.cpu",
    ),
    ({"affinity": {"node": {}}}, ("at '/affinity'", "node"), "affinity.node"),
    ({"podLabels": {"a": 1}}, ("at '/podLabels/a'", "string"), "podLabels.a"),
    (
        {"networkPolicy": {"metricsFrom": [{"cidr": ""}]}},
        ("at '/networkPolicy/metricsFrom/0'", "cidr"),
        "cidr",
    ),
]

CONTRADICTIONS: list[dict[str, Any]] = [
    {"replicaCount": 2, "leaderElection": {"enabled": False}},
    {"metrics": {"secure": True}},
    {"metrics": {"secure": True, "enabled": False, "certificate": {"secretName": "x"}}},
    {"nodeAgent": {"enabled": True, "namespace": NAMESPACE}},
    {"nodeAgent": {"enabled": True}, "controller": {"kernelEvidence": {"namespace": "mine"}}},
]


@pytest.mark.parametrize(("values", "told", "named"), WRONG, ids=lambda one: str(one)[:60])
def test_a_wrong_value_is_named_by_both(
    values: dict[str, Any], told: tuple[str, str], named: str, helm: Helm, plugin: Plugin
) -> None:
    where, why = told
    refusal = helm.refusal(values)
    assert where in refusal
    assert why in refusal
    status, out, err = plugin(values)
    assert (status, out) == (2, "")
    assert named in err


@pytest.mark.parametrize("values", CONTRADICTIONS, ids=str)
def test_contradictions_are_told_in_the_same_words(
    values: dict[str, Any], helm: Helm, plugin: Plugin
) -> None:
    status, _, err = plugin(values)
    assert status == 2
    sentence = err.removeprefix("error: ").strip()
    assert len(sentence) > 40
    assert sentence in helm.refusal(values)


def test_null_for_a_value_of_ours_is_refused_and_for_one_of_kubernetes_own_is_not(helm: Helm) -> None:
    assert "missing property 'mapper'" in helm.refusal({"nodeAgent": {"mapper": None}})
    (deployment,) = [
        one for one in helm.render({"resources": {"limits": {"cpu": None}}}) if one["kind"] == "Deployment"
    ]
    resources = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"memory": "512Mi"}


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_lint_finds_nothing(values: dict[str, Any], helm: Helm) -> None:
    text = helm("lint", "--strict", CHART, "-n", NAMESPACE, "-f", helm.values_file(values))
    assert "0 chart(s) failed" in text
    assert "WARNING" not in text


def test_values_yaml_holds_the_defaults(helm: Helm) -> None:
    assert yaml.safe_load(helm("show", "values", CHART)) == DEFAULTS


def test_another_chart_may_depend_on_this_one(helm: Helm) -> None:
    assert helm.render({"global": {"imageRegistry": "x"}})


def test_an_old_cluster_is_refused(helm: Helm) -> None:
    words: list[str | Path] = ["template", "x", CHART, "-n", NAMESPACE, "--kube-version"]
    assert "kubeVersion: >=1.30.0-0" in helm(*words, "1.29.9", status=1)
    assert helm(*words, "1.30.3-eks-1234")


def test_the_schema_closes_every_section_and_describes_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def walk(part: dict[str, Any], defaults: dict[str, Any]) -> None:
        assert part["additionalProperties"] is False
        assert set(part["properties"]) - {"global"} == set(defaults) == set(part["required"])
        for key, one in part["properties"].items():
            if key != "global":
                assert one["description"].endswith((".", ")"))
            if isinstance(one.get("required"), list):
                walk(one, defaults[key])

    walk(schema, DEFAULTS)


def test_the_reference_has_a_row_for_every_value() -> None:
    page = (ROOT / "docs" / "helm.md").read_text()

    def paths(values: dict[str, Any], schema: dict[str, Any], where: str = "") -> list[str]:
        found = []
        for key, value in values.items():
            one, path = schema["properties"][key], f"{where}.{key}".lstrip(".")
            found += paths(value, one, path) if "required" in one else [path]
        return found

    listed = paths(DEFAULTS, json.loads((CHART / "values.schema.json").read_text()))
    assert len(listed) > 50
    assert [path for path in listed if f"\n| `{path}` | `" not in page] == []
