# SPDX-License-Identifier: MIT
"""check: every form as a golden file, before and after an installation, well and ill."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kubectl_pacto.cli.main import main
from kubectl_pacto.jsonschemas import validator, violations
from tests.support.fake_api import Fault
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


@pytest.mark.parametrize(
    ("words", "rest"),
    [((), "Resources, Operator, Node agents, Nodes"), (("--pre",), "Rights, Admission, Nodes")],
)
@pytest.mark.parametrize("form", ["table", "short"])
def test_a_server_that_does_not_answer_is_said_once(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], rest: str, form: str
) -> None:
    assert main(["check", *words, "-o", form, "--server", "http://127.0.0.1:9"]) == 1
    said = capsys.readouterr().out
    assert said.count("the API server cannot be reached") == 1
    assert f"skipped  not checked: {rest} [rest]\n" in said
    assert said.endswith("Result: 1 failed, 1 skipped\n")


def test_credentials_that_are_not_accepted_are_said_once(plugin: Plugin) -> None:
    plugin.api.faults += [Fault(status=401)] * 20
    done = plugin("check", "-o", "json")
    ((group, checks),) = ((one["group"], one["checks"]) for one in json.loads(done.out)["groups"])
    assert group == "Kubernetes API"
    assert [(one["id"], one["result"]) for one in checks] == [
        ("api-reachable", "failed"),
        ("rest", "skipped"),
    ]
    assert done.status == 1


def test_a_check_that_breaks_does_not_stop_the_others(plugin: Plugin) -> None:
    prepare(plugin.api)
    plugin.api.forbidden = {"version", "customresourcedefinitions", "deployments", "nodes"}
    done = plugin("check", "-o", "json")
    groups = {one["group"]: one["checks"] for one in json.loads(done.out)["groups"]}
    assert [one["result"] for one in groups["Kubernetes API"]] == ["failed"]
    assert {one["result"] for one in groups["Resources"]} == {"skipped"}
    assert len(groups) == 5
    assert done.status == 1
