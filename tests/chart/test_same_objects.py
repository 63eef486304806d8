# SPDX-License-Identifier: MIT
"""helm renders the very objects that `kubectl pacto install` makes of the same values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_pacto.controller.manifests.chart_values import VALUES
from kubectl_pacto.controller.manifests.operator_objects import release_objects
from kubectl_pacto.controller.manifests.values_schema import (
    DURATION_PATTERN,
    INTERVAL_PATTERN,
    Schema,
    Section,
)
from kubectl_pacto.errors import UsageError
from tests.support.helm import CHART, NAMESPACE, Helm
from tests.support.releases import FULL, SETS, by_key, of_helm, of_plugin

Plugin = Callable[[Mapping[str, Any]], tuple[int, str, str]]
TEXTS = ["", "a", "1", "true", "null", "x: y", 'it\'s "so" & <so> {{ .Values }}', "grün", "*"]
NAMES = ["", "a", "1", "e1", "conformance", "pacto-operator"]
DURATIONS = ["", "30s", "1m30s", "0.5s"]


def same(rendered: list[dict[str, Any]], installed: list[dict[str, Any]]) -> None:
    """Object by object."""
    ours, theirs = of_plugin(installed, NAMESPACE), of_helm(rendered)
    assert theirs.keys() == ours.keys()
    for key, one in ours.items():
        assert theirs[key] == one, key


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_both_installers_make_the_same_objects(values: dict[str, Any], helm: Helm, plugin: Plugin) -> None:
    status, out, err = plugin(values)
    assert status == 0, err
    same(helm.render(values), list(yaml.safe_load_all(out)))


def test_the_sets_say_every_value_at_least_once() -> None:
    def paths(values: Mapping[str, Any], section: Section, where: str = "") -> set[str]:
        found = set()
        for key, value in values.items():
            one = section.entries[key]
            path = f"{where}.{key}"
            found |= paths(value, one, path) if isinstance(one, Section) else {path}
        return found

    said = set().union(*(paths(values, VALUES) for values in SETS.values()))
    assert said | {".serviceAccount.automount"} >= paths(VALUES.defaults(), VALUES)
    assert len(FULL) > 15


def strategy(schema: Schema, default: Any) -> st.SearchStrategy[Any]:
    """Values that a schema allows, the default often."""
    kind = schema["type"]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        return st.integers(schema["minimum"], schema.get("maximum", 9))
    if kind == ["string", "integer"]:
        return st.sampled_from(["10%", "3", 3])
    if kind == "string":
        if "maxLength" in schema:
            return st.sampled_from([one for one in NAMES if re.search(schema["pattern"], one)])
        if schema.get("pattern") in (DURATION_PATTERN, INTERVAL_PATTERN):
            return st.sampled_from([one for one in DURATIONS if re.search(schema["pattern"], one)])
        return st.sampled_from([one for one in TEXTS if len(one) >= schema.get("minLength", 0)])
    if schema.get("items") == {"type": "string", "minLength": 1}:
        return st.lists(st.sampled_from(TEXTS[1:]), max_size=2)
    if schema.get("additionalProperties") == {"type": "string"}:
        return st.dictionaries(st.sampled_from(["a", "b/c"]), st.sampled_from(TEXTS), max_size=2)
    return st.just(default)


def choices(section: Section) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the values of a section, and not the others."""
    some: dict[str, st.SearchStrategy[Any]] = {}
    for key, one in section.entries.items():
        some[key] = choices(one) if isinstance(one, Section) else strategy(one.schema, one.default)
    return st.fixed_dictionaries({}, optional=some)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(values=choices(VALUES))
def test_whatever_the_values_both_make_the_same_or_both_refuse(values: dict[str, Any], helm: Helm) -> None:
    refused = ""
    try:
        installed = release_objects(values, namespace=NAMESPACE)
    except UsageError as error:
        refused = str(error)
    if refused:
        assert refused in helm.refusal(values)
        return
    same(helm.render(values), installed)


@pytest.mark.parametrize(("release", "name"), [("shop", "shop-pacto-operator"), ("a" * 53, "a" * 50)])
def test_another_release_names_its_objects_after_it(release: str, name: str, helm: Helm) -> None:
    text = helm("template", release, CHART, "-n", NAMESPACE, "--kube-version", "1.34.4")
    objects = by_key(one for one in yaml.safe_load_all(text) if one)
    assert ("apps/v1", "Deployment", NAMESPACE, name) in objects
    assert ("v1", "Service", NAMESPACE, f"{name}-metrics") in objects


def test_crds_are_kept_unless_told_otherwise(helm: Helm) -> None:
    for values, kept in (({}, "keep"), ({"crds": {"keep": False}}, None)):
        found = [one for one in helm.render(values) if one["kind"] == "CustomResourceDefinition"]
        assert len(found) == 3
        assert {one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") for one in found} == {
            kept
        }
