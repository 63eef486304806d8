# SPDX-License-Identifier: MIT
"""check: every form as a golden file, before and after an installation, well and ill."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kubectl_pacto.jsonschemas import validator, violations
from tests.unit.cli.conftest import Plugin
from tests.unit.cli.fleet_scene import node
from tests.unit.cli.test_install import prepare
from tests.unit.cli.test_listing import SCHEMAS

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("form", ["table", "short", "json"])
@pytest.mark.parametrize("name", ["pre-well", "pre-ill", "installed", "nothing"])
def test_each_form_is_a_golden_file(
    request: pytest.FixtureRequest, golden: Golden, name: str, form: str
) -> None:
    plugin: Plugin = request.getfixturevalue("plugin" if name == "installed" else "bare")
    prepare(plugin.api)
    plugin.api.served |= {"deployments", "daemonsets", "leases", "noderuntimeobservations"}
    if name == "pre-ill":
        plugin.api.put("/version", {"gitVersion": "v1.29.0"})
        plugin.api.put("/apis/admissionregistration.k8s.io/v1", {"resources": []})
        plugin.api.denied = {"customresourcedefinitions", "deployments"}
        old = node("old")
        plugin.api.add(
            {**old, "status": {"nodeInfo": {"kernelVersion": "4.19.0", "operatingSystem": "linux"}}}
        )
    if name == "installed":
        plugin.api.put("/api/v1/namespaces/pacto-node-agent", {"metadata": {"name": "pacto-node-agent"}})
    done = plugin("check", *(["--pre"] if name.startswith("pre") else []), "-o", form)
    golden(f"check-{name}.{form}", done.text.replace(plugin.url, "URL"))
    if form == "json":
        schema = json.loads((SCHEMAS / "CheckReport.json").read_text())
        assert violations(validator(schema), json.loads(done.out)) == []


def test_a_check_that_breaks_does_not_stop_the_others(plugin: Plugin) -> None:
    prepare(plugin.api)
    plugin.api.forbidden = {"version", "customresourcedefinitions", "deployments", "nodes"}
    done = plugin("check", "-o", "json")
    groups = {one["group"]: one["checks"] for one in json.loads(done.out)["groups"]}
    assert [one["result"] for one in groups["Kubernetes API"]] == ["failed"]
    assert {one["result"] for one in groups["Resources"]} == {"skipped"}
    assert len(groups) == 5
    assert done.status == 1
