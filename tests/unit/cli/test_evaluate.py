# SPDX-License-Identifier: MIT
"""`kubectl pacto evaluate` from its arguments to its output and exit status."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from tests.support.builders import AT, ago, objects

ABSENT = {"pods": {"a": {"listens": []}}, "windows": {"interface/api": 180}}
CLOCK = ["--at", "2026-10-18T09:12:44Z"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "bundle.yaml"
    path.write_text(yaml.safe_dump_all(objects(ABSENT)))
    return path


def evaluate(*arguments: str | Path) -> int:
    return main(["evaluate", *map(str, arguments)])


def result(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_fixed_clock_is_the_builders() -> None:
    assert ago(0) == "2026-10-18T09:12:44.000Z"


def test_errors_are_listed_before_what_the_contract_itself_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dependencies = [{"name": name, "ref": f"oci://r.example/{name}:1.0.0"} for name in ("db", "mail")]
    path = tmp_path / "bundle.yaml"
    contract = {"interfaces": ["api"], "dependencies": dependencies}
    path.write_text(yaml.safe_dump_all(objects({**ABSENT, "contract": contract})))
    assert evaluate("-f", path, *CLOCK) == 3
    said = capsys.readouterr().out
    codes = re.findall(r"^  (error|unknown|warning) +([A-Z_]+)", said, re.MULTILINE)
    assert codes[0] == ("error", "INTERFACE_ABSENT")
    assert codes[-2:] == [("warning", "TAG_NOT_DIGEST")] * 2
    for name in ("db", "mail"):
        assert f"dependency {name}: the tag of oci://r.example/{name}:1.0.0 can be moved" in said


def test_json_is_a_bare_list_with_the_status_of_each_pacto(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("-f", bundle, *CLOCK, "-o", "json") == 3
    (item,) = result(capsys)
    assert sorted(item) == ["name", "namespace", "status"]
    status = item["status"]
    assert status["contractStatus"] == "NonCompliant"
    assert status["evaluationCoverage"]["evaluated"] == 1
    assert status["summary"] == {"errorCount": 1, "warningCount": 0, "infoCount": 0, "unknownCount": 0}
    assert status["observationWindows"] == [
        {"kind": "interface", "subject": "api", "firstObservedNegativeAt": "2026-10-18T09:09:44Z"}
    ]
    (finding,) = status["findings"]
    assert finding["code"] == "INTERFACE_ABSENT"
    assert finding["severity"] == "error"
    assert finding["category"] == "RuntimeDrift"
    assert finding["subject"] == "interface/api"
    assert finding["contractPath"] == "interfaces[name=api]"
    assert finding["evidenceRefs"] == [
        {
            "source": "k8s",
            "collector": "k8s-observer+ebpf",
            "observedAt": "2026-10-18T09:12:44Z",
            "detectedAt": "2026-10-18T09:12:44Z",
        }
    ]
    assert status["kernelEvidence"] == {"complete": 1, "partial": 0, "failed": 0, "stale": 0, "reasons": {}}


def test_evidence_is_printed_on_request(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate("-f", bundle, *CLOCK, "-o", "json", "--evidence")
    (item,) = result(capsys)
    assert item["evidence"]["subject"] == {"kind": "service", "name": "shop/shop"}
    assert item["evidence"]["source"] == "k8s"
    assert item["evidence"]["observedAt"] == "2026-10-18T09:12:44Z"
    assert item["evidence"]["observations"][0] == {
        "kind": "InterfaceObserved",
        "subject": {"kind": "interface", "name": "api"},
        "outcome": "Observed",
        "value": {"type": "openapi", "present": False},
        "provenance": {"collector": "k8s-observer+ebpf", "detectedAt": "2026-10-18T09:12:44Z"},
    }


def test_yaml_says_the_same_as_json(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate("-f", bundle, *CLOCK, "-o", "json", "--evidence")
    as_json = result(capsys)
    evaluate("-f", bundle, *CLOCK, "-o", "yaml", "--evidence")
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_the_printed_status_can_be_fed_back(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate("-f", bundle, *CLOCK, "-o", "json")
    first = result(capsys)[0]["status"]
    raws = [
        {**raw, "status": first} if raw["metadata"]["name"] == "shop" and raw["kind"] == "Pacto" else raw
        for raw in objects(ABSENT)
    ]
    bundle.write_text(yaml.safe_dump_all(raws))
    evaluate("-f", bundle, *CLOCK, "-o", "json")
    assert result(capsys)[0]["status"] == first


def test_lists_directories_json_and_several_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raws = objects(ABSENT)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": raws[:3]})
    )
    pods = [dict(raw) for raw in raws[3:] if raw["kind"] == "Pod"]
    for raw in pods:
        del raw["kind"], raw["apiVersion"]
    (tmp_path / "pods.yml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "PodList", "items": pods}))
    (tmp_path / "notes.txt").write_text("not an object")
    rest = tmp_path.parent / "rest.yaml"
    rest.write_text("---\n" + yaml.safe_dump_all([raw for raw in raws[3:] if raw["kind"] != "Pod"]) + "---\n")
    assert evaluate("-f", tmp_path, "-f", rest, *CLOCK, "-o", "json") == 3
    assert result(capsys)[0]["status"]["findings"][0]["code"] == "INTERFACE_ABSENT"


def test_objects_come_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = io.TextIOWrapper(io.BytesIO(yaml.safe_dump_all(objects(ABSENT)).encode()))
    monkeypatch.setattr("sys.stdin", text)
    assert evaluate("-f", "-", *CLOCK) == 3
    assert "INTERFACE_ABSENT" in capsys.readouterr().out


def test_unknown_kinds_are_skipped_with_a_count(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extra = [{"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "x"}}] * 2
    bundle.write_text(
        yaml.safe_dump_all(
            [*objects(ABSENT), *extra, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]
        )
    )
    assert evaluate("-f", bundle, *CLOCK) == 3
    assert (
        "skipped 3 object(s) of kinds that no check reads: 1 Node, 2 Service.serving.knative.dev"
        in capsys.readouterr().err
    )


def test_what_was_not_read_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "contract": {"configurations": [{"name": "app", "required": True, "schema": "app.json"}]},
        "target": {"configBindings": [{"configuration": "app", "kind": "Secret", "name": "conf"}]},
        "windows": {"configuration/app": 300},
    }
    unread = {
        "apiVersion": "pacto.trianalab.io/v1alpha1",
        "kind": "Unread",
        "metadata": {"name": "bundle"},
        "unread": [{"kind": "Secret", "reason": "never part of a bundle"}],
    }
    path = tmp_path / "bundle.yaml"
    path.write_text(yaml.safe_dump_all(objects(row)))
    assert evaluate("-f", path, *CLOCK) == 3
    path.write_text(yaml.safe_dump_all([*objects(row), unread]))
    assert evaluate("-f", path, *CLOCK) == 0
    assert "cannot read Secret conf: never part of a bundle" in " ".join(capsys.readouterr().out.split())


def test_a_table_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "pactoVersion: '2.0'\nservice: {name: a, version: 1.0.0, \"\\e[2Jgone\": 1}\n"
    path = tmp_path / "bundle.yaml"
    path.write_text(yaml.safe_dump_all(objects({"contractRef": {"inline": evil}})))
    assert evaluate("-f", path, *CLOCK) == 3
    said = capsys.readouterr().out
    assert "gone" in said
    assert all(line.isprintable() for line in said.splitlines())


def test_times_without_quotes_are_text(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quoted = bundle.read_text()
    bundle.write_text(re.sub(r"'(\d{4}-\d\d-\d\dT[^']*)'", r"\1", quoted))
    assert bundle.read_text() != quoted
    assert evaluate("-f", bundle, *CLOCK) == 3


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 3),
        (["--fail-on", "error"], 3),
        (["--fail-on", "never"], 0),
        (["--kernel-evidence", "off"], 0),
        (["--kernel-evidence", "off", "--fail-on", "unknown"], 0),
        (["--stabilization-window", "5m"], 0),
        (["--stabilization-window", "5m", "--fail-on", "warning"], 0),
        (["--stabilization-window", "5m", "--fail-on", "unknown"], 3),
        (["--staleness", "4s"], 0),
        (["--agent-namespace", "elsewhere"], 0),
    ],
)
def test_the_gate_is_the_exit_status(bundle: Path, arguments: list[str], status: int) -> None:
    assert evaluate("-f", bundle, *CLOCK, *arguments) == status


def test_kernel_evidence_on_without_any_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raws = [raw for raw in objects({}) if raw["kind"] not in ("NodeRuntimeObservation", "Lease")]
    path = tmp_path / "bundle.yaml"
    path.write_text(yaml.safe_dump_all(raws))
    evaluate("-f", path, *CLOCK, "-o", "json", "--kernel-evidence", "on")
    assert result(capsys)[0]["status"]["findings"][0]["code"] == "EVIDENCE_STALE"
    evaluate("-f", path, *CLOCK, "-o", "json")
    assert result(capsys)[0]["status"]["contractStatus"] == "Compliant"


def test_probe_results_are_read(tmp_path: Path, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle.write_text(yaml.safe_dump_all(objects({})))
    probes = tmp_path / "probes.yaml"
    probes.write_text("- {namespace: shop, service: shop, port: 80, protocol: other}\n")
    assert evaluate("-f", bundle, *CLOCK, "-o", "json", "--probe-results", probes) == 3
    assert result(capsys)[0]["status"]["findings"][0]["code"] == "INTERFACE_PROTOCOL_MISMATCH"


def test_an_unbound_interface_is_found_by_its_ports_name_only_when_asked(
    bundle: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    objects = [raw for raw in yaml.safe_load_all(bundle.read_text()) if raw]
    for raw in objects:
        if raw["kind"] == "Pacto":
            raw["spec"]["target"].pop("interfaceBindings", None)
        if raw["kind"] in ("Service", "EndpointSlice"):
            raw.get("spec", raw)["ports"][0]["name"] = "api"
    unbound = tmp_path / "unbound.yaml"
    unbound.write_text(yaml.safe_dump_all(objects))
    answers = {}
    for flags in ((), ("--interface-name-match-discovery",)):
        evaluate("-f", unbound, "-o", "json", "--fail-on", "never", *flags)
        answers[flags] = {finding["code"] for one in result(capsys) for finding in one["status"]["findings"]}
    assert "OBSERVATION_UNSUPPORTED" in answers[()]
    assert answers[()] != answers["--interface-name-match-discovery",]


def test_half_a_character_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "half.json"
    file.write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\\ud800"}}')
    assert evaluate("-f", file) == 1
    assert "half.json: spells half of a character: \\ud800" in capsys.readouterr().err


def test_output_that_cannot_be_written_is_one_line(bundle: Path) -> None:
    command = [sys.executable, "-m", "kubectl_pacto", "evaluate", "-f", str(bundle)]
    with Path("/dev/full").open("w", encoding="ascii") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: cannot write the output: No space left on device"


def test_metrics_are_judged_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inline = {
        "pactoVersion": "2.0",
        "service": {"name": "shop", "version": "1.0.0"},
        "interfaces": [{"name": "api", "type": "openapi", "ref": "api.yaml"}],
        "capabilities": [
            {"type": "metrics", "binding": {"type": "http", "interface": "api", "path": "/metrics"}}
        ],
    }
    pacto = {
        "apiVersion": "pacto.trianalab.io/v1alpha1",
        "kind": "Pacto",
        "metadata": {"name": "shop", "namespace": "n"},
        "spec": {
            "contractRef": {"inline": yaml.safe_dump(inline)},
            "target": {"serviceName": "shop", "interfaceBindings": [{"interface": "api", "servicePort": 80}]},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop", "namespace": "n"},
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]},
    }
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump_all([pacto, service]))
    codes = []
    for flags in ((), ("--enable-metrics-observation",)):
        evaluate("-f", file, "-o", "json", "--fail-on", "never", *flags)
        (one,) = result(capsys)
        codes.append([f["code"] for f in one["status"]["findings"] if f["subject"] == "capability/metrics"])
    assert codes == [["OBSERVATION_UNSUPPORTED"], ["COLLECTION_FAILED"]]


def test_a_contract_in_a_registry_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bundle.yaml"
    path.write_text(
        yaml.safe_dump_all(objects({"contractRef": {"oci": "oci://registry.example/shop:1.0.0"}}))
    )
    assert evaluate("-f", path, *CLOCK, "-o", "json", "--fail-on", "unknown") == 3
    status = result(capsys)[0]["status"]
    assert status["contractStatus"] == "Unknown"
    assert status["resolutionPolicy"] == "PinnedTag"
    assert "validation" not in status
    assert status["contract"] == {"serviceName": "shop", "version": "1.0.0"}  # others resolve by it
    assert status["conditions"][0]["reason"] == "Unavailable"


def test_an_input_without_pactos_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("")
    assert evaluate("-f", path, "-o", "json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == []
    assert "no Pacto in the input" in said.err


MALFORMED = {
    "a field of a pod": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nstatus: {startTime: noon}\n",
        "Pod shop/a: status.startTime: 'noon' is not an RFC 3339 time",
    ),
    "a field of an item of a list": (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: 5}}\n",
        "Pod a: spec.containers: must be a list, not a whole number",
    ),
    "a port that is none": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 99999}]}\n",
        "Service s: spec.ports[0].port: must be a port number from 1 to 65535",
    ),
    "a label that is no text": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {version: 1.0}}\n",
        "Pod a: metadata.labels.version: must be a string, not a number: quote it",
    ),
    "an object without a name": (
        "apiVersion: v1\nkind: Pod\nmetadata: {}\n",
        "Pod (without a name): metadata.name: is required",
    ),
    "an object without a kind": ("apiVersion: v1\n", "document 1: kind: is required"),
    "an object without an apiVersion": ("kind: Pod\nmetadata: {name: a}\n", "Pod a: apiVersion: is required"),
    "a document that is no object": ("- 1\n", "document 1: must be a Kubernetes object, not a list"),
    "a second document that is no object": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\nhello\n",
        "document 2: must be a Kubernetes object, not a string",
    ),
    "a list whose items are none": (
        "apiVersion: v1\nkind: List\nitems: {}\n",
        "items: must be a list, not a mapping",
    ),
    "text that is no YAML": ("a: [\n", "line 2, column 1: is not YAML"),
    "an unknown anchor": ("a: *b\n", "undefined alias"),
    "a workload kind that is none": (
        "apiVersion: pacto.trianalab.io/v1alpha1\nkind: Pacto\nmetadata: {name: p, namespace: shop}\n"
        "spec: {contractRef: {oci: x/y}, target: {workloadRef: {name: p, kind: DaemonSet}}}\n",
        "Pacto shop/p: spec.target.workloadRef.kind: must be one of Deployment,",
    ),
    "a binding without a port": (
        "apiVersion: pacto.trianalab.io/v1alpha1\nkind: Pacto\nmetadata: {name: p, namespace: shop}\n"
        "spec: {target: {serviceName: p, interfaceBindings: [{interface: api}]}}\n",
        "Pacto shop/p: spec.target.interfaceBindings[0].servicePort: is required",
    ),
    "a window without a start": (
        "apiVersion: pacto.trianalab.io/v1alpha1\nkind: Pacto\nmetadata: {name: p, namespace: shop}\n"
        "status: {observationWindows: [{kind: interface, subject: api}]}\n",
        "Pacto shop/p: status.observationWindows[0].firstObservedNegativeAt: is required",
    ),
    "a node state that is none": (
        "apiVersion: pacto.trianalab.io/v1alpha1\nkind: NodeRuntimeObservation\n"
        "metadata: {name: n, namespace: a}\nnodeName: n\ncollection: {state: Fine}\n",
        "NodeRuntimeObservation a/n: collection.state: must be one of",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_input_names_file_object_and_field(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = MALFORMED[name]
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert evaluate("-f", path) == 1
    said = capsys.readouterr()
    first, *rest = said.err.splitlines()
    assert first.startswith(f"error: {path}: ")
    assert expected in first
    assert not rest
    assert not said.out


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bad.json", '{"a": ', "is not JSON"),
        ("deep.yaml", "[" * 3000, "nest"),
        ("bytes.yaml", b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)
def test_unreadable_input_names_the_file(
    name: str, text: str | bytes, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert evaluate("-f", path) == 1
    assert capsys.readouterr().err.startswith(f"error: {path}: ")


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate("-f", "/nowhere/bundle.yaml") == 1
    assert "/nowhere/bundle.yaml: cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "must be a list of probe results"),
        ("- {namespace: a, service: b, port: 80, protocol: smtp}", "[0]: protocol: must be one of 'http1'"),
        ("- {namespace: a, service: b}", "[0]: port: must be a port number"),
        ("- 5", "[0]: (top): must be a mapping"),
        (
            "- {namespace: a, service: b, port: 80, protocl: other}",
            "[0]: protocl: is no field of a probe result: namespace, service, port, protocol, http are",
        ),
        (
            "- {namespace: a, service: b, port: 80, http: {path: /, status: 404}}",
            "[0]: http.status: is no field of a probe result: path, code, contentType, body are",
        ),
        (
            "- {namespace: a, service: b, port: 80, http: {code: 99}}",
            "[0]: http.code: must be an HTTP status",
        ),
    ],
)
def test_malformed_probe_results_name_file_and_field(
    text: str, expected: str, tmp_path: Path, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = tmp_path / "probes.yaml"
    probes.write_text(text)
    assert evaluate("-f", bundle, "--probe-results", probes) == 1
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-f"],
        ["-f", "x", "--at", "noon"],
        ["-f", "x", "--staleness", "3 parsecs"],
        ["-f", "x", "--stabilization-window", "-5s"],
        ["-f", "x", "-o", "xml"],
        ["-f", "x", "--fail-on", "sometimes"],
        ["-f", "x", "--kernel-evidence", "maybe"],
        ["--no-such-flag"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(*arguments) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("2m", 120), ("1h30m", 5400), ("500ms", 0.5), ("0", 0)]
)
def test_durations(text: str, seconds: float, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate("-f", bundle, *CLOCK, "-o", "json", "--stabilization-window", text)
    outcome = result(capsys)[0]["status"]["contractStatus"]
    assert outcome == ("NonCompliant" if seconds <= 180 else "Unknown")


def test_a_closed_pipe_is_quiet(bundle: Path) -> None:
    words = f"evaluate -f {bundle} {' '.join(CLOCK)} -o json --evidence"
    script = f"{sys.executable} -m kubectl_pacto {words} | head -c 1"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "["
    assert not done.stderr


def test_the_clock_is_now_without_at(
    bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: AT)
    assert evaluate("-f", bundle) == 3
