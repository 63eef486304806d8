# SPDX-License-Identifier: MIT
"""The plugin from install to uninstall on real nodes: one with an agent, one without, and pods on both."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cluster.api import ApiError, Object
from tests.cluster.fixtures import wait_until
from tests.cluster.layout import REPOSITORY
from tests.cluster.live import NODES, Live
from tests.cluster.manifests import container, deployment, file_probe, service
from tests.images import runtime

pytestmark = pytest.mark.cluster
OPERATORS: Final = "pacto-operator-system"
AGENTS: Final = "pacto-node-agent"
WATCHED, BLIND = NODES[:2]
LABEL: Final = "cli.example/agent"
IMAGE, _, TAG = runtime.NAME.rpartition(":")
VALUES: Final[dict[str, Any]] = {
    "image": {"repository": IMAGE, "tag": TAG, "pullPolicy": "Never"},
    "controller": {"stabilizationWindow": "4s"},
    "nodeAgent": {
        "enabled": True,
        "image": runtime.NAME,
        "imagePullPolicy": "Never",
        "publishInterval": "2s",
        "resyncInterval": "10s",
        "nodeSelector": {LABEL: "here"},
    },
}
CHECK_SECONDS: Final = 30
VERDICTS: Final = {
    "afar": "Unknown", "caller": "NonCompliant", "mute": "NonCompliant", "store": "Compliant",
}  # fmt: skip


@dataclass(frozen=True)
class Plugin:
    """`kubectl pacto` as a process, against this cluster."""

    kubeconfig: Path

    def __call__(self, *words: str, status: int = 0) -> str:
        """What it printed, on both streams; its exit status must be this one."""
        done = self.process(*words)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def data(self, *words: str) -> Any:
        """What it printed as JSON."""
        done = self.process(*words, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def process(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it."""
        return subprocess.run(
            [sys.executable, "-m", "kubectl_pacto", *words],
            cwd=REPOSITORY,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )


@pytest.fixture(scope="module")
def plugin(cluster: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    """Installed once for all tests of this file, on a cluster that has nothing of it before and after."""
    made = Plugin(cluster.kubeconfig)
    values = tmp_path_factory.mktemp("values") / "values.json"
    values.write_text(json.dumps(VALUES))
    cluster.kubectl("label", "node", WATCHED, f"{LABEL}=here")
    try:
        refused = {**VALUES, "image": {**VALUES["image"], "tag": "none"}}
        broken = values.with_name("broken.json")
        broken.write_text(json.dumps(refused))
        made("install", "-f", str(broken), "--no-wait")
        # how fast a kubelet comes to an image that is not there is no matter of the plugin's
        assert wait_until(lambda: refuses(cluster), 120), cluster.describe(OPERATORS)
        said = made("install", "-f", str(broken), "--timeout", "2s", status=1)
        assert re.search(
            r"error: not ready after 2s: .*deployment\.apps/pacto-operator \(0 of 1 ready: "
            r"pod pacto-operator-\S+ on node-[ab]: ErrImageNeverPull",
            said,
        ), said
        said = made("install", "-f", str(values), "--timeout", "170s")
        assert "pacto is ready" in said
        assert "next: kubectl pacto coverage" in said
        assert made.data("status", "-A")["nodeAgent"]["ready"] == 1  # waited for, too
        yield made
    finally:
        made.process("uninstall", "--yes", "--delete-crds", "--timeout", "170s")
        cluster.kubectl("label", "node", WATCHED, f"{LABEL}-", check=False)


def refuses(cluster: Live) -> bool:
    """Whether a kubelet has told that an operator's image is not there."""
    told = [one for pod in cluster.pods(OPERATORS) for one in pod["status"].get("containerStatuses", [])]
    return any(one["state"].get("waiting", {}).get("reason") == "ErrImageNeverPull" for one in told)


def app(
    namespace: str, name: str, *run: str, node: str = WATCHED, needs: tuple[str, ...] = ()
) -> list[Object]:
    """A Service, its Deployment on one node, and a Pacto whose contract says what it serves and needs."""
    where = {"kubernetes.io/hostname": node}
    made = container(run[0], *run, readinessProbe=file_probe())
    contract: dict[str, Any] = {
        "pactoVersion": "2.0",
        "service": {"name": f"{namespace}-{name}", "version": "1.0.0"},
        "interfaces": [{"name": "api", "type": "openapi", "ref": "openapi.yaml"}],
    }
    if needs:
        contract["dependencies"] = [
            {
                "name": f"{namespace}-{one}",
                "ref": f"oci://registry.example/{namespace}-{one}",
                "compatibility": "^1.0.0",
                "required": True,
            }
            for one in needs
        ]
    target = {
        "serviceName": name,
        "workloadRef": {"kind": "Deployment", "name": name},
        "interfaceBindings": [{"interface": "api", "servicePort": 80}],
    }
    return [
        service(namespace, name),
        deployment(namespace, name, [made], nodeSelector=where),
        {
            "apiVersion": "pacto.trianalab.io/v1alpha1",
            "kind": "Pacto",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "contractRef": {"inline": yaml.safe_dump(contract)},
                "checkIntervalSeconds": CHECK_SECONDS,
                "target": target,
            },
        },
    ]


@pytest.fixture(scope="module")
def shop(plugin: Plugin, cluster: Live) -> Iterator[str]:
    """A namespace where one service never listens, one calls what it does not declare, one is unwatched."""
    name = f"cli-{secrets.token_hex(3)}"
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    objects = [
        *app(name, "store", "http"),
        *app(name, "mute", "silent"),
        *app(name, "caller", "client", f"store.{name}:80", node=WATCHED),
        *app(name, "afar", "http", node=BLIND),
    ]
    for raw in objects:
        if raw["kind"] == "Deployment" and raw["metadata"]["name"] == "caller":
            # no cluster DNS here: the client is told the address
            found = cluster.api.get("v1", "Service", "store", name)
            assert found is not None
            raw["spec"]["template"]["spec"]["containers"][0]["args"] = [
                "client", f"{found['spec']['clusterIP']}:80",
            ]  # fmt: skip
        cluster.api.create(raw)
    assert wait_until(lambda: settled(plugin, name), 240), plugin("status", "-n", name) + cluster.describe(
        name
    )
    yield name
    cluster.api.delete("v1", "Namespace", name)


def codes(plugin: Plugin, namespace: str) -> dict[str, set[str]]:
    """The findings of each Pacto by code."""
    items = plugin.data("status", "-n", namespace)["pactos"]
    return {one["name"]: {finding["code"] for finding in one["findings"]} for one in items}


def verdicts(plugin: Plugin, namespace: str) -> dict[str, str]:
    """The verdict on each Pacto."""
    items = plugin.data("status", "-n", namespace)["pactos"]
    return {one["name"]: one["contractStatus"] for one in items}


def settled(plugin: Plugin, namespace: str) -> bool:
    """Whether the operator has come to what the shop deserves."""
    found = codes(plugin, namespace)
    return (
        "INTERFACE_ABSENT" in found.get("mute", ())
        and "INTERFACE_ABSENT" in found.get("caller", ())
        and "DEPENDENCY_UNDECLARED" in found.get("caller", ())
        and "EVIDENCE_STALE" in found.get("afar", ())
        and not found.get("store", {"none yet"})
        and verdicts(plugin, namespace) == VERDICTS
    )


def test_status_shows_operator_agents_and_verdicts(plugin: Plugin, shop: str) -> None:
    text = plugin("status", "-n", shop)
    assert re.search(r"^Operator +1/1 ready, pacto-operator-system/pacto-operator", text, re.MULTILINE), text
    assert re.search(r"^Node agent +1/1 ready.*nodes: 1/2 Running, 1 NoAgent", text, re.MULTILINE), text
    assert verdicts(plugin, shop) == VERDICTS
    assert text.index("\nmute") < text.index("\nstore")
    assert plugin.process("status", "-n", shop, "--fail-on", "error").returncode == 3


def test_coverage_has_a_row_for_a_node_without_an_agent(plugin: Plugin, shop: str) -> None:
    rows = {one["node"]: one for one in plugin.data("coverage")["items"]}
    assert set(rows) == {WATCHED, BLIND}
    assert (rows[BLIND]["state"], rows[BLIND]["reason"]) == ("NoAgent", "NoNodeObject")
    assert rows[BLIND]["podLevels"]["stale"] >= 1
    assert rows[WATCHED]["state"] == "Running"
    assert rows[WATCHED]["podLevels"]["complete"] >= 3
    table = plugin("coverage").splitlines()
    assert table[1].split()[:2] == [BLIND, "NoAgent"]


def test_coverage_of_a_node_and_of_a_pod(plugin: Plugin, shop: str, cluster: Live) -> None:
    pods = [one for one in plugin.data("coverage", "--node", WATCHED)["items"] if one["namespace"] == shop]
    store = next(one for one in pods if one["pod"].startswith("store-"))
    assert store["level"] == "Complete"
    assert {"address": "0.0.0.0", "port": 8080} in store["listeners"]
    caller = next(one for one in pods if one["pod"].startswith("caller-"))
    (one,) = plugin.data("coverage", "--pod", f"{shop}/{caller['pod']}")["items"]
    address = cluster.api.get("v1", "Service", "store", shop)["spec"]["clusterIP"]  # type: ignore[index]
    assert (address, 80) in {(peer["address"], peer["port"]) for peer in one["peers"]}
    far = [one for one in plugin.data("coverage", "--node", BLIND)["items"] if one["namespace"] == shop]
    assert [(item["level"], item["reasons"]) for item in far] == [("Stale", ["NoNodeObject"])]


def test_findings_name_who_decided_and_suggest_declares(plugin: Plugin, shop: str) -> None:
    items = plugin.data("findings", "-n", shop, "--code", "INTERFACE_ABSENT")["items"]
    # neither listens: the caller has a Service and an interface, and only calls
    assert {(one["pacto"], one["evidenceRefs"][0]["collector"]) for one in items} == {
        ("mute", "k8s-observer+ebpf"), ("caller", "k8s-observer+ebpf"),
    }  # fmt: skip
    (patch,) = plugin.data("suggest", "caller", "-n", shop)
    assert patch["patch"]["dependencies"] == [
        {"name": f"{shop}-store", "ref": "", "compatibility": "^1.0.0", "required": False}
    ]


def test_a_bundle_gives_the_same_verdicts_anywhere(plugin: Plugin, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "bundle.yaml"
    said = plugin("bundle", "--to", str(file))
    at = re.search(r"objects at (\S+)", said)
    assert at, said
    live = {one["name"]: one for one in plugin.data("status", "-n", shop)["pactos"]}
    nowhere = Plugin(tmp_path / "none")
    words = ("evaluate", "-f", str(file), "--at", at[1], "--stabilization-window", "4s", "--fail-on", "never")
    replayed = {one["name"]: one["status"] for one in nowhere.data(*words) if one["namespace"] == shop}
    assert set(replayed) == set(live)
    for name, status in replayed.items():
        assert status["contractStatus"] == live[name]["contractStatus"], name
        wanted = sorted((one["code"], one.get("subject")) for one in live[name]["findings"])
        assert sorted((one["code"], one.get("subject")) for one in status["findings"]) == wanted
    kinds = {raw["kind"] for raw in yaml.safe_load_all(file.read_text())}
    assert "Secret" not in kinds
    assert {"Unread", "NodeRuntimeObservation", "Lease"} <= kinds


def test_a_report_draws_what_the_cluster_proves(plugin: Plugin, shop: str) -> None:
    data = plugin.data("report", "-n", shop)
    calls = {(one["caller"], one["callee"]): one["state"] for one in data["graph"]["calls"]}
    assert calls == {(f"{shop}/caller", f"{shop}/store"): "not declared, seen"}
    assert {one["node"]: one["state"] for one in data["nodes"]} == {WATCHED: "Running", BLIND: "NoAgent"}
    assert f"<title>Pacto report: {shop}</title>" in plugin("report", "-n", shop)


def test_check_names_the_node_without_an_agent(plugin: Plugin, shop: str) -> None:
    done = plugin.process("check", "-o", "json")
    checks = [one for group in json.loads(done.stdout)["groups"] for one in group["checks"]]
    failed = [(one["id"], one["what"]) for one in checks if one["result"] == "failed"]
    assert (done.returncode, failed) == (1, [("node-report", f"node {BLIND} reports")])


def test_an_upgrade_shows_changes_before_it_makes_them(plugin: Plugin, shop: str) -> None:
    words = ("upgrade", "--set", "controller.stabilizationWindow=5s")
    said = plugin(*words, "--dry-run", "server")
    assert re.search(r"^\+.*5s", said, re.MULTILINE), said
    assert "deployment.apps/pacto-operator configured (server dry run)" in said
    said = plugin(*words, "--timeout", "170s")
    assert "deployment.apps/pacto-operator configured" in said
    assert "pacto is ready" in said
    said = plugin("upgrade", "--timeout", "170s")
    assert "nothing changed" in said
    assert " configured" not in said


def test_uninstall_leaves_nothing(plugin: Plugin, cluster: Live) -> None:
    said = plugin("uninstall", "--yes", "--delete-crds", "--timeout", "170s")
    assert "namespace/pacto-node-agent deleted" in said
    for name in (OPERATORS, AGENTS):
        assert wait_until(lambda name=name: gone(cluster, name), 90), cluster.describe(name)  # type: ignore[misc]
    kinds = (
        "crd,clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,"
        "role,rolebinding,configmap,serviceaccount,deployment,daemonset,service,networkpolicy"
    )
    left = cluster.kubectl("get", kinds, "-A", "-o", "name").stdout.splitlines()
    assert [name for name in left if "pacto" in name] == []
    plugin("uninstall", "--yes", status=1)


def gone(cluster: Live, namespace: str) -> bool:
    """Whether a namespace is no longer there."""
    try:
        return cluster.api.get("v1", "Namespace", namespace) is None
    except ApiError:
        return False
