# SPDX-License-Identifier: MIT
"""bundle holds what a verdict rests on and no secret; version says what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kubectl_pacto import __version__
from kubectl_pacto.cli.main import main
from kubectl_pacto.jsonschemas import validator, violations
from tests.unit.cli.conftest import Plugin
from tests.unit.cli.fleet_scene import pod
from tests.unit.cli.test_listing import SCHEMAS

Golden = Callable[[str, str], None]
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "shop"},
    "data": {"p": "x"},
}


def test_a_bundle_holds_no_secret_and_only_bound_config_maps(plugin: Plugin, tmp_path: Path) -> None:
    api = plugin.api
    carrier = pod("shop", "carrier", "node-a", "uid-9")
    carrier["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    carrier["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": "hunter2",
        "sidecar.istio.io/status": "{}",
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    path = "/apis/pacto.trianalab.io/v1alpha1/namespaces/shop/pactos/orders"
    binding = {"configuration": "main", "kind": "ConfigMap", "name": "bound"}
    raw = api.objects[path]
    api.put(
        path,
        {**raw, "spec": {**raw["spec"], "target": {"serviceName": "orders", "configBindings": [binding]}}},
    )
    api.add(
        SECRET,
        carrier,
        {**config, "metadata": {"name": "bound", "namespace": "shop"}},
        {**config, "metadata": {"name": "other", "namespace": "shop"}},
    )
    file = tmp_path / "bundle.yaml"
    done = plugin("bundle", "--to", str(file))
    assert done.status == 0, done.err
    text = file.read_text()
    objects = list(yaml.safe_load_all(text))
    kinds = {raw["kind"] for raw in objects}
    assert "hunter2" not in text
    assert "managedFields" not in text
    assert "Secret" not in kinds
    assert [raw["metadata"]["name"] for raw in objects if raw["kind"] == "ConfigMap"] == ["bound"]
    assert {"Pacto", "Pod", "Deployment", "NodeRuntimeObservation", "Lease"} <= kinds
    assert f"{len(objects)} objects at 2026-10-18T09:12:4" in done.err
    assert not any("secrets" in seen.path for seen in api.seen)


def test_evaluate_reads_a_bundle(plugin: Plugin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bundle.json"
    assert plugin("bundle", "--to", str(file), "-o", "json").status == 0
    assert (
        main(
            ["evaluate", "-f", str(file), "--at", "2026-10-18T09:12:44Z", "-o", "json", "--fail-on", "never"]
        )
        == 0
    )
    assert len(json.loads(capsys.readouterr().out)) == 6


@pytest.mark.parametrize("option", ["-f", "--filename"])
def test_the_option_that_reads_elsewhere_writes_nothing(plugin: Plugin, tmp_path: Path, option: str) -> None:
    file = tmp_path / "an old bundle.yaml"
    file.write_text("kept\n")
    done = plugin("bundle", option, str(file))
    assert (done.status, done.out) == (2, "")
    assert f"--to '{file}'" in done.err
    assert file.read_text() == "kept\n"
    assert not plugin.api.seen


def test_what_may_not_be_read_is_left_out_and_said(plugin: Plugin) -> None:
    plugin.api.forbidden = {"pods"}
    done = plugin("bundle")
    assert done.status == 0
    assert "left out, may not be read: pods" in done.err
    (unread,) = [raw for raw in yaml.safe_load_all(done.out) if raw["kind"] == "Unread"]
    kinds = {one["kind"]: one["reason"] for one in unread["unread"]}
    assert set(kinds) == {"Secret", "Pod"}
    assert kinds["Secret"] == "never part of a bundle"
    assert plugin("bundle", "--to", "/nonexistent/x").status == 1


def test_a_bundle_names_what_it_could_not_read_each_by_its_kind(plugin: Plugin) -> None:
    path = "/apis/pacto.trianalab.io/v1alpha1/namespaces/shop/pactos/orders"
    raw = plugin.api.objects[path]
    binding = {"configuration": "main", "kind": "ConfigMap", "name": "bound"}
    plugin.api.put(path, {**raw, "spec": {**raw["spec"], "target": {"configBindings": [binding]}}})
    plugin.api.forbidden = {"configmaps", "ingresses", "leases", "noderuntimeobservations"}
    objects = list(yaml.safe_load_all(plugin("bundle").out))
    unread = {(one["kind"], one.get("namespace", ""), one.get("name", "")) for one in objects[-1]["unread"]}
    assert unread == {
        ("Secret", "", ""),
        ("Ingress", "", ""),
        ("ConfigMap", "shop", "bound"),
        ("NodeRuntimeObservation", "", ""),
        ("Lease", "", ""),
    }


def test_evaluate_takes_unread_nodes_for_a_view_that_is_not_there(
    plugin: Plugin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kubectl_pacto.cli.evaluate_cmd import has_agents
    from kubectl_pacto.collect.objects import read_objects

    file = tmp_path / "bundle.yaml"
    plugin.api.forbidden = {"noderuntimeobservations"}
    assert plugin("bundle", "--to", str(file)).status == 0
    assert has_agents(read_objects([str(file)]).cluster())


@pytest.mark.parametrize("form", ["text", "json"])
def test_version_says_what_differs(plugin: Plugin, golden: Golden, form: str) -> None:
    plugin.api.put("/version", {"gitVersion": "v1.34.4"})
    path = "/apis/pacto.trianalab.io/v1alpha1/namespaces/pacto-node-agent/noderuntimeobservations/node-a"
    raw = plugin.api.objects[path]
    plugin.api.put(path, {**raw, "node": {**raw["node"], "agentVersion": "0.0.9"}})
    done = plugin("version", "-o", form)
    if form == "json":
        data = json.loads(done.out)
        schema = json.loads((SCHEMAS / "Version.json").read_text())
        assert violations(validator(schema), data) == []
        assert data["agents"] == {"0.1.0": 3, "0.0.9": 1}
        return
    golden("version.text", "\n".join(done.text.splitlines()[1:]) + "\n")


def test_version_stands_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--client"]) == 0
    assert capsys.readouterr().out.startswith(f"plugin      {__version__} (Python")
    assert main(["version"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("plugin")
    assert "the cluster cannot be asked: no cluster is configured" in err
