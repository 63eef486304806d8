# SPDX-License-Identifier: MIT
"""helm install, upgrade and uninstall on a real API server leave what the plugin leaves."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from kubectl_pacto.controller.manifests.operator_objects import release_objects
from tests.cluster.api import Api, Object
from tests.cluster_chart.conftest import Installers
from tests.support.helm import NAMESPACE, RELEASE
from tests.support.releases import FULL, HELM_LABELS, SETS, key, plain

pytestmark = pytest.mark.cluster
ENFORCE = "pod-security.kubernetes.io/enforce"
# what the server or a controller writes, and what tells Helm whose an object is
SERVERS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
NOTES = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "helm.sh/resource-policy")


def everything() -> dict[str, Any]:
    """Every value, but for the kind that this cluster does not serve."""
    values = plain(FULL)
    values["metrics"]["serviceMonitor"]["enabled"] = False
    return values


def settled(one: Object) -> Object:
    """An object without what is its installer's or the server's own."""
    found = copy.deepcopy(one)
    found.pop("status", None)
    metadata = found["metadata"]
    for name in SERVERS:
        metadata.pop(name, None)
    annotations = metadata.pop("annotations", {})
    for name in (*NOTES, "deployment.kubernetes.io/revision"):
        annotations.pop(name, None)
    metadata["annotations"] = annotations
    metadata["labels"] = {k: v for k, v in metadata.get("labels", {}).items() if k not in HELM_LABELS}
    if found["kind"] == "Service":
        for name in ("clusterIP", "clusterIPs"):
            found["spec"].pop(name)  # allocated
    return found


def there(api: Api, values: dict[str, Any]) -> dict[tuple[str, str, str, str], Object]:
    """The objects of a release as the server has them; the release's namespace is Helm's to make."""
    found = {}
    for one in release_objects(values, namespace=NAMESPACE):
        version, kind, namespace, name = key(one)
        if (kind, name) != ("Namespace", NAMESPACE):
            got = api.get(version, kind, name, namespace)
            assert got is not None, key(one)
            found[key(one)] = settled(got)
    return found


@pytest.mark.parametrize("values", [SETS["agent"], everything()], ids=["agent", "everything"])
def test_both_leave_the_same_objects_and_nothing_when_they_go(
    values: dict[str, Any], installers: Installers
) -> None:
    api, file = installers.live.api, str(installers.helm.values_file(values))
    assert "rollout status deployment/pacto-operator" in installers.install("-f", file)
    assert installers.upgrade("--reset-then-reuse-values").count("REVISION: 2") == 1
    of_helm = there(api, values)
    assert "belongs to the Helm release" in installers.plugin("upgrade", status=1)
    installers.helm("uninstall", RELEASE, "-n", NAMESPACE, "--wait")
    agents = values["nodeAgent"].get("namespace", "pacto-node-agent")
    installers.wait_for(lambda: installers.gone(agents), 180, "the agents' namespace is gone")
    left = [one for one in release_objects(values, namespace=NAMESPACE) if api.get(*looked_up(one))]
    assert {one["kind"] for one in left} == {"CustomResourceDefinition", "Namespace"}
    installers.sweep()

    installers.plugin("install", "--no-wait", "-f", file)
    of_plugin = there(api, values)
    assert of_plugin.keys() == of_helm.keys()
    for name, one in of_plugin.items():
        assert of_helm[name] == one, name


def looked_up(one: Object) -> tuple[str, str, str, str]:
    """Arguments of Api.get."""
    version, kind, namespace, name = key(one)
    return version, kind, name, namespace


def test_the_server_knows_every_field_of_every_set(installers: Installers) -> None:
    api = installers.live.api
    for name in (NAMESPACE, "pacto-node-agent", "agents", "mine", "shop", "123"):
        installers.live.kubectl("create", "namespace", name, check=False)
    # a pod is let in once its account is there
    installers.wait_for(lambda: api.get("v1", "ServiceAccount", "default", NAMESPACE), 60)
    seen: set[str] = set()
    try:
        for values in SETS.values():
            for one in installers.helm.render(values):
                text = json.dumps(one, sort_keys=True)
                if text in seen or one["kind"] == "ServiceMonitor":
                    continue
                seen.add(text)
                version, kind, namespace, name = key(one)
                path = api.path(version, kind, namespace, name)
                query = "?dryRun=All&fieldValidation=Strict&fieldManager=strict&force=true"
                api.raw("PATCH", path + query, text, "application/apply-patch+yaml")
    finally:
        for name in ("mine", "shop", "123", "agents", "pacto-node-agent"):
            api.delete("v1", "Namespace", name)
    assert len(seen) > 80


@pytest.mark.parametrize("by", ["helm", "plugin"])
def test_the_release_namespace_keeps_its_own_level(by: str, installers: Installers) -> None:
    labels = {ENFORCE: "baseline", "team": "a"}
    api = installers.live.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    if by == "helm":
        installers.install("--set", "nodeAgent.enabled=true")
    else:
        installers.plugin("install", "--node-agent", "--no-wait")
    found = {name: api.get("v1", "Namespace", name) for name in (NAMESPACE, "pacto-node-agent")}
    levels = {name: one["metadata"]["labels"].get(ENFORCE) for name, one in found.items() if one}
    assert levels == {NAMESPACE: "baseline", "pacto-node-agent": "privileged"}
    if by == "plugin":
        installers.plugin("uninstall", "--yes")
        assert api.get("v1", "Namespace", NAMESPACE)


def test_turning_the_agent_off_removes_its_namespace_rights_and_policy(installers: Installers) -> None:
    api = installers.live.api
    installers.install("--set", "nodeAgent.enabled=true")
    policy = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "pacto-node-agent-own-node")
    assert api.get(*policy)
    text = installers.upgrade("--reset-then-reuse-values", "--set", "nodeAgent.enabled=false")
    assert "The kernel is not asked" in text
    installers.wait_for(lambda: installers.gone("pacto-node-agent"), 180)
    assert api.get(*policy) is None
    installers.upgrade("--reset-then-reuse-values", "--set", "nodeAgent.enabled=true")
    assert api.get(*policy)


def test_helm_makes_nobodys_namespace_privileged(installers: Installers) -> None:
    installers.live.kubectl("create", "namespace", "agents")
    words = ["--set", "nodeAgent.enabled=true,nodeAgent.namespace=agents"]
    text = installers.helm("install", RELEASE, *where(), *words, status=1)
    assert 'Namespace "agents"' in text
    assert "invalid ownership metadata" in text


def where() -> list[Any]:
    """Chart and namespace of a release."""
    from tests.support.helm import CHART

    return [CHART, "-n", NAMESPACE, "--create-namespace"]


def test_a_release_of_another_name_takes_the_crds_over(installers: Installers) -> None:
    installers.install()
    installers.helm("uninstall", RELEASE, "-n", NAMESPACE, "--wait")
    text = installers.helm("install", "shop", *where(), status=1)
    assert "invalid ownership metadata" in text
    try:
        installers.helm("install", "shop", *where(), "--take-ownership")
    finally:
        installers.helm("uninstall", "shop", "-n", NAMESPACE, "--wait")


def test_the_notes_say_what_to_run_next(installers: Installers) -> None:
    def notes(*more: str) -> str:
        text = installers.helm("install", "x", *where(), "--dry-run=server", *more)
        return text.partition("\nNOTES:\n")[2]

    off = notes()
    assert f"kubectl -n {NAMESPACE} rollout status deployment/x-pacto-operator" in off
    assert "--set nodeAgent.enabled=true" in off
    assert f"helm test x -n {NAMESPACE}" in off
    on = notes("--set", "nodeAgent.enabled=true,nodeAgent.namespace=agents,metrics.enabled=false")
    assert "kubectl pacto coverage --agent-namespace agents" in on
    assert "nodeAgent.enabled=true" not in on
    assert "helm test" not in on
    assert "yourself before each upgrade" in notes("--set", "crds.enabled=false")


def test_what_is_rendered_is_what_the_release_holds(installers: Installers) -> None:
    installers.install()
    held = [
        one for one in yaml.safe_load_all(installers.helm("get", "manifest", RELEASE, "-n", NAMESPACE)) if one
    ]
    rendered = [
        one
        for one in installers.helm.render({})
        if "helm.sh/hook" not in one["metadata"].get("annotations", {})
    ]
    assert sorted(map(key, held)) == sorted(map(key, rendered))
