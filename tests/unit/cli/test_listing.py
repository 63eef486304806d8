# SPDX-License-Identifier: MIT
"""status, findings and coverage: every form as a golden file, and what no golden file shows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import kubectl_pacto.cli
from kubectl_pacto.cli.terminal import may_colour
from kubectl_pacto.jsonschemas import validator, violations
from tests.support.fake_api import Fault
from tests.support.sources import ROOT
from tests.unit.cli.conftest import Plugin

Golden = Callable[[str, str], None]
SCHEMAS = Path(kubectl_pacto.cli.__file__).parent / "schemas"
COMMANDS = {
    "status": ["status", "-n", "shop"],
    "status-all": ["status", "-A"],
    "status-name": ["status", "ledger", "-n", "ops"],
    "status-selector": ["status", "-A", "-l", "team=ops"],
    "findings": ["findings", "-A"],
    "findings-collector": ["findings", "-A", "--collector", "ebpf", "--severity", "warning"],
    "findings-code": ["findings", "-A", "--code", "interface_absent"],
    "coverage": ["coverage"],
    "coverage-node": ["coverage", "--node", "node-a"],
    "coverage-pod": ["coverage", "--pod", "shop/payments-0"],
}


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name"])
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_prints_its_golden_file(plugin: Plugin, golden: Golden, name: str, form: str) -> None:
    golden(f"{name}.{form}", plugin(*COMMANDS[name], "-o", form).text)


@pytest.mark.parametrize("name", COMMANDS)
def test_json_keeps_its_schema(plugin: Plugin, name: str) -> None:
    data = json.loads(plugin(*COMMANDS[name], "-o", "json").out)
    schema = json.loads((SCHEMAS / f"{data['kind']}.json").read_text())
    assert violations(validator(schema), data) == []
    assert schema["properties"]["kind"] == {"const": data["kind"]}


@pytest.mark.parametrize("command", ["status", "findings"])
@pytest.mark.parametrize(
    ("scope", "gate", "status"),
    [
        ("shop", "never", 0),
        ("shop", "error", 3),
        ("ops", "error", 3),
        ("ops", "unknown", 3),
        ("none", "unknown", 0),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_the_gate_gives_the_same_status_for_every_form(
    plugin: Plugin, command: str, scope: str, gate: str, status: int, form: str
) -> None:
    assert plugin(command, "-n", scope, "--fail-on", gate, "-o", form).status == status


def test_a_warning_passes_the_gate_of_errors(plugin: Plugin) -> None:
    assert plugin("status", "orders", "-n", "shop", "--fail-on", "error").status == 0
    assert plugin("status", "orders", "-n", "shop", "--fail-on", "warning").status == 3


def test_pages_are_followed(plugin: Plugin) -> None:
    whole = plugin("status", "-A", "-o", "name").out
    plugin.api.page = 2
    assert plugin("status", "-A", "-o", "name").out == whole
    assert len(whole.splitlines()) == 6


@pytest.mark.parametrize(
    "command",
    [["coverage"], ["coverage", "--node", "node-a"], ["bundle", "-o", "json"], ["version", "-o", "json"]],
)
def test_a_command_that_reads_all_namespaces_anyway_takes_the_flag_for_it(
    plugin: Plugin, command: list[str]
) -> None:
    done = plugin(*command, "-A")
    assert (done.status, done.out) == (0, plugin(*command).out)
    assert done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--node", "node-a", "--pod", "a/b"],
            "--pod and --node exclude each other: --pod a/b alone says its",
        ),
        (["--pod", "b", "-A"], "--pod names one pod: with --pod NAMESPACE/POD instead of -A"),
    ],
)
def test_coverage_is_asked_one_question(plugin: Plugin, arguments: list[str], said: str) -> None:
    done = plugin("coverage", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert not plugin.api.seen


def test_a_pod_is_named_with_its_namespace_or_by_it(plugin: Plugin) -> None:
    whole = plugin("coverage", "--pod", "shop/payments-0").out
    assert plugin("coverage", "--pod", "payments-0", "-n", "shop").out == whole != ""


def test_the_pods_of_a_node_may_be_those_of_one_namespace(plugin: Plugin) -> None:
    def pods(*words: str) -> set[tuple[str, str]]:
        items = json.loads(plugin("coverage", "--node", "node-a", "-o", "json", *words).out)["items"]
        return {(item["namespace"], item["pod"]) for item in items}

    of_shop = pods()
    assert {namespace for namespace, _ in of_shop} == {"shop"}
    metadata = {"name": "db-0", "namespace": "data", "uid": "u-db"}
    plugin.api.add({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "node-a"},
        "status": {"phase": "Running"},
    })  # fmt: skip
    assert pods() == of_shop | {("data", "db-0")}
    assert pods("-n", "shop") == of_shop
    assert pods("-n", "data") == {("data", "db-0")}
    assert pods("-n", "nobody") == set()


def test_a_cluster_without_pacto_says_how_to_install_it(bare: Plugin) -> None:
    for words in (["status"], ["status", "x"], ["findings"]):
        done = bare(*words)
        assert (done.status, done.out) == (1, "")
        assert done.err == (
            "error: Pacto is not installed in this cluster (there is no CRD pactos.pacto.trianalab.io): "
            "`kubectl pacto install` installs it\n"
        )


def test_what_is_not_there_is_said(plugin: Plugin) -> None:
    assert "there is no Pacto nope in namespace shop" in plugin("status", "nope", "-n", "shop").err
    assert "there is no node nope" in plugin("coverage", "--node", "nope").err
    assert plugin("status", "-n", "empty").err == "no Pacto in namespace empty (-A looks in all)\n"
    assert "no Pacto matches 'a=b'" in plugin("status", "-l", "a=b").err
    assert plugin("findings", "inventory", "-n", "shop").err == "no findings\n"


@pytest.mark.parametrize(
    ("code", "meant"), [("INTERFACE_ABSNT", "INTERFACE_ABSENT"), ("absent", ""), ("NOPE", "")]
)
def test_a_code_that_no_finding_has_is_wrong_usage_and_no_cluster_is_asked(
    plugin: Plugin, code: str, meant: str
) -> None:
    done = plugin("findings", "-A", "--code", code)
    assert (done.status, done.out) == (2, "")
    assert f"'--code': no finding is called {code}" in done.err
    assert f"did you mean {meant}" in done.err or not meant
    assert "`kubectl pacto explain` lists them" in done.err
    assert not plugin.api.seen


def test_a_code_may_be_spelled_as_explain_takes_it(plugin: Plugin) -> None:
    assert (
        plugin("findings", "-A", "--code", "interface-absent").out
        == plugin("findings", "-A", "--code", "INTERFACE_ABSENT").out
        != ""
    )


def test_what_may_not_be_read_is_said_and_the_rest_is_shown(plugin: Plugin) -> None:
    plugin.api.forbidden = {"nodes", "deployments", "pods"}
    done = plugin("status", "-n", "shop")
    assert done.status == 0
    assert "warning: the nodes cannot be read" in done.out
    assert "payments" in done.out
    rows = plugin("coverage", "-o", "json")
    items = json.loads(rows.out)["items"]
    assert [item["node"] for item in items] == ["node-b", "node-c", "node-d", "node-a"]
    assert {item["podLevels"] for item in items} == {None}


def test_pactos_that_may_not_be_read_are_an_error_with_a_remedy(plugin: Plugin) -> None:
    plugin.api.forbidden = {"pactos"}
    done = plugin("status", "-A")
    assert done.status == 1
    assert done.err.startswith("error: GET /apis/pacto.trianalab.io")
    assert done.err.rstrip().endswith("(ask for this right, or choose another --user or --as)")
    assert done.err.count("\n") == 1


def test_an_api_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from kubectl_pacto.cli.main import main

    assert main(["status", "--server", "http://127.0.0.1:1"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "http://127.0.0.1:1: Connection refused" in err
    assert err.count("\n") == 1


def test_a_server_that_breaks_for_a_moment_is_asked_again(plugin: Plugin) -> None:
    plugin.api.faults.append(Fault(503))
    assert plugin("findings", "-A").status == 0


def test_wrong_usage_is_two(plugin: Plugin) -> None:
    assert plugin("status", "x", "-A").status == 2
    assert plugin("status", "-o", "toml").status == 2
    assert plugin("status", "--nope").status == 2


def test_colour_is_for_terminals_and_those_who_force_it(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = plugin("status", "-n", "shop").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = plugin("status", "-n", "shop").out
    assert "\x1b[31mNonCompliant" in painted
    assert __import__("re").sub(r"\x1b\[\d+m", "", painted) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert plugin("status", "-n", "shop").out == plain
    assert not may_colour({"TERM": "dumb"})


def test_no_headers_leaves_out_the_line_of_headers(plugin: Plugin) -> None:
    assert plugin("findings", "-A", "--no-headers").out.splitlines()[0].startswith("ops")


@pytest.mark.parametrize("command", ["status", "findings"])
def test_what_a_person_waits_for_imports_no_more_than_it_needs(command: str) -> None:
    code = (
        "import sys; from kubectl_pacto.cli.main import main; "
        f"main(['{command}', '--server', 'http://127.0.0.1:1']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert "kubectl_pacto.collect.fleet" in loaded
    heavy = {
        "kubernetes",
        "jsonschema",
        "tabulate",
        "semver",
        "kubectl_pacto.conformance",
        "kubectl_pacto.observe",
        "kubectl_pacto.engine",
        "kubectl_pacto.controller",
        "tempfile",
        "subprocess",
    } | ({"kubectl_pacto.model.node", "kubectl_pacto.model.finding"} if command == "status" else set())
    assert not loaded & heavy
