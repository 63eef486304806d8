# SPDX-License-Identifier: MIT
"""install, upgrade and uninstall against a fake cluster: what is there afterwards, and what is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.install import wait
from kubectl_pacto.cli.install.objects import path_of, read_values
from kubectl_pacto.controller.manifests import agent_objects, operator_objects
from kubectl_pacto.controller.manifests.agent_objects import before_the_agent
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.client import Client
from tests.support.fleet_api import FleetApi
from tests.unit.cli.conftest import Plugin

Raw = dict[str, Any]
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pactos.pacto.trianalab.io"
AGENT_NAMESPACE = "/api/v1/namespaces/pacto-node-agent"
DEPLOYMENT = "/apis/apps/v1/namespaces/pacto-operator-system/deployments/pacto-operator"


def made_of(values: Mapping[str, Any], *, namespace: str) -> list[Raw]:
    """A release in small, with the shapes that matter here."""
    labels = {"app.kubernetes.io/name": "pacto-operator"}
    inside = {"name": "pacto-operator", "namespace": namespace, "labels": labels}
    crd: Raw = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pactos.pacto.trianalab.io"},
        "spec": {"group": "pacto.trianalab.io"},
    }
    agent = values.get("nodeAgent", {}).get("enabled")
    replicas = values.get("replicas", 1)
    template = {"spec": {"containers": [{"name": "operator", "image": "pacto:0.1.0"}]}}
    return [
        crd,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
        *(before_the_agent(NodeAgentValues()) if agent else []),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": inside,
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        },
    ]


@pytest.fixture
def cluster(bare: Plugin, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """An empty cluster that can take an installation."""
    monkeypatch.setattr(operator_objects, "release_objects", made_of)
    monkeypatch.setattr(wait, "POLL_SECONDS", 0.01)
    prepare(bare.api)
    return bare


def prepare(api: FleetApi) -> None:
    """What every cluster has."""
    policies = [{"name": "validatingadmissionpolicies"}, {"name": "validatingadmissionpolicybindings"}]
    api.put("/version", {"gitVersion": "v1.34.4"})
    api.put("/apis/admissionregistration.k8s.io/v1", {"resources": policies})
    api.served = {"nodes", "pods"}


def test_install_creates_all_in_order_and_again_changes_nothing(cluster: Plugin) -> None:
    first = cluster("install", "--node-agent")
    assert first.status == 0, first.err
    lines = first.out.splitlines()
    assert lines[0] == "customresourcedefinition.apiextensions.k8s.io/pactos.pacto.trianalab.io created"
    assert lines[-1] == "deployment.apps/pacto-operator created"
    assert len(lines) == len(made_of({"nodeAgent": {"enabled": True}}, namespace="x"))
    assert "next: kubectl pacto coverage" in first.err
    second = cluster("install")
    assert {line.rpartition(" ")[2] for line in second.out.splitlines()} == {"unchanged"}
    assert "nothing changed" in second.err


def test_what_a_controller_notes_on_an_object_meanwhile_is_no_change_of_ours(
    cluster: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Deployment's own controller numbers it some time after it was created."""
    cluster("install")
    apply = Client.apply

    def numbered_meanwhile(client: Client, path: str, raw: Raw) -> Raw:
        if path.startswith(DEPLOYMENT):
            metadata = cluster.api.objects[DEPLOYMENT]["metadata"]
            metadata["annotations"] = {"deployment.kubernetes.io/revision": "1"}
        return apply(client, path, raw)

    monkeypatch.setattr(Client, "apply", numbered_meanwhile)
    again = cluster("install")
    assert "deployment.kubernetes.io/revision" in str(cluster.api.objects[DEPLOYMENT])
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
    assert "nothing changed" in again.err


def test_whoever_installs_agents_waits_for_them_and_reads_why_not(cluster: Plugin) -> None:
    path = "/apis/apps/v1/namespaces/pacto-node-agent/daemonsets/pacto-node-agent"
    cluster("install", "--node-agent", "--no-wait")
    ready = cluster.api.objects.pop(path)
    done = cluster("install", "--timeout", "0.05s")
    assert done.status == 1
    assert done.err.endswith(
        "error: not ready after 0.05s: daemonset.apps/pacto-node-agent (not there yet)\n"
    )
    agent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent-1", "namespace": "pacto-node-agent", "labels": {"app": "agent"}},
        "spec": {"nodeName": "node-a"},
        "status": {
            "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such"}}}]
        },
    }
    counts = {**ready["status"], "numberReady": 1, "numberAvailable": 1}
    chosen = {**ready["spec"], "selector": {"matchLabels": {"app": "agent"}}}
    cluster.api.add(agent, {**ready, "spec": chosen, "status": counts})
    done = cluster("install", "--timeout", "0.05s")
    said = "daemonset.apps/pacto-node-agent (1 of 2 ready: pod agent-1 on node-a: ErrImagePull (no such))"
    assert done.err.endswith(f"not ready after 0.05s: {said}\n")
    assert cluster("install", "--no-wait").status == 0


def test_agents_that_are_ready_but_of_before_are_waited_for(cluster: Plugin) -> None:
    """The operator changes its DaemonSet after it has come up itself; until then all of it is ready."""
    path = "/apis/apps/v1/namespaces/pacto-node-agent/daemonsets/pacto-node-agent"
    cluster("install", "--node-agent")
    before = cluster.api.objects[path]
    words = ("upgrade", "--set", "nodeAgent.publishInterval=10s", "--timeout", "0.05s")
    cluster.api.operates = False
    said = "daemonset.apps/pacto-node-agent (not changed by the operator yet)"
    assert cluster(*words).err.endswith(f"error: not ready after 0.05s: {said}\n")
    changed = agent_objects.desired(NodeAgentValues(publish_interval="10s"))
    counts = {**before["status"], "updatedNumberScheduled": 1}
    cluster.api.add({**changed, "status": counts})
    said = "daemonset.apps/pacto-node-agent (1 of 2 updated)"
    assert cluster(*words).err.endswith(f"error: not ready after 0.05s: {said}\n")
    cluster.api.add({**changed, "status": before["status"]})
    assert cluster(*words).status == 0


@pytest.mark.parametrize("whose", ["mutated", "other version"])
def test_agents_are_known_by_the_operators_mark_or_by_what_they_are_told(cluster: Plugin, whose: str) -> None:
    path = "/apis/apps/v1/namespaces/pacto-node-agent/daemonsets/pacto-node-agent"
    cluster("install", "--node-agent")
    found = cluster.api.objects[path]
    if whose == "mutated":  # by a policy that takes images from elsewhere
        found["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror.example/agent:1"
    else:
        found["metadata"]["annotations"][agent_objects.HASH] = "of another version"
    cluster.api.operates = False
    assert cluster("upgrade", "--timeout", "0.05s").status == 0
    found["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror.example/agent:1"
    found["metadata"]["annotations"][agent_objects.HASH] = "of another version"
    assert cluster("upgrade", "--timeout", "0.05s").status == 1


def test_what_changed_is_configured(cluster: Plugin) -> None:
    cluster("install")
    done = cluster("install", "--set", "replicas=2", "--no-wait")
    assert "deployment.apps/pacto-operator configured" in done.out
    assert cluster.api.objects[DEPLOYMENT]["spec"]["replicas"] == 2


def test_turning_the_agent_off_removes_its_namespace_and_policy(cluster: Plugin) -> None:
    cluster("install", "--node-agent")
    assert AGENT_NAMESPACE in cluster.api.objects
    done = cluster("upgrade", "--no-node-agent")
    assert "namespace/pacto-node-agent deleted" in done.out
    assert (
        "validatingadmissionpolicy.admissionregistration.k8s.io/pacto-node-agent-own-node deleted" in done.out
    )
    assert not [path for path in cluster.api.objects if "node-agent" in path]


def test_uninstall_keeps_crds_and_removes_the_rest(cluster: Plugin) -> None:
    cluster("install", "--node-agent")
    done = cluster("uninstall", "--yes")
    assert done.status == 0, done.err
    left = [path for path in cluster.api.objects if "/version" not in path and not path.endswith("/v1")]
    assert left == [CRD_PATH]
    assert cluster("uninstall", "--yes").status == 1


def test_uninstall_removes_crds_when_asked_to(cluster: Plugin) -> None:
    cluster("install")
    cluster("uninstall", "--yes", "--delete-crds")
    assert CRD_PATH not in cluster.api.objects


def test_a_namespace_that_was_there_before_stays(cluster: Plugin) -> None:
    cluster.api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    cluster("install", "-n", "mine")
    cluster("install", "-n", "mine")
    cluster("uninstall", "-n", "mine", "--yes")
    assert "/api/v1/namespaces/mine" in cluster.api.objects


def test_uninstall_asks_and_without_a_terminal_wants_to_be_told(cluster: Plugin) -> None:
    done = cluster("uninstall")
    assert (done.status, "--yes" in done.err) == (2, True)
    assert not cluster.api.writes


def test_nothing_installed_is_said(cluster: Plugin) -> None:
    for command in (["upgrade"], ["uninstall", "--yes"]):
        done = cluster(*command)
        assert done.status == 1
        assert "nothing is installed in namespace pacto-operator-system" in done.err


def test_a_helm_release_is_not_touched(cluster: Plugin) -> None:
    deployment = made_of({}, namespace="pacto-operator-system")[-1]
    notes = {"meta.helm.sh/release-name": "pacto", "meta.helm.sh/release-namespace": "ops"}
    cluster.api.put(DEPLOYMENT, {**deployment, "metadata": {**deployment["metadata"], "annotations": notes}})
    for command in (["install"], ["upgrade"], ["uninstall", "--yes"]):
        done = cluster(*command)
        assert done.status == 1
        assert "belongs to the Helm release pacto of namespace ops" in done.err
    assert not cluster.api.writes


def test_crds_of_another_operator_are_not_touched_unless_taken_over(cluster: Plugin) -> None:
    crd = made_of({}, namespace="x")[0]
    cluster.api.put(
        CRD_PATH, {**crd, "metadata": {**crd["metadata"], "managedFields": [{"manager": "manager"}]}}
    )
    done = cluster("install")
    assert done.status == 1
    assert "was made by manager, not by this plugin" in done.err
    assert not cluster.api.writes
    assert cluster("install", "--take-ownership").status == 0


def test_the_objects_can_be_printed_without_a_cluster(cluster: Plugin) -> None:
    done = cluster("install", "-o", "yaml", "--node-agent")
    printed = list(yaml.safe_load_all(done.out))
    assert printed == made_of({"nodeAgent": {"enabled": True}}, namespace="pacto-operator-system")
    assert "(dry run)" in cluster("install", "--dry-run", "client").out
    assert not cluster.api.seen


def test_a_dry_run_of_the_server_changes_nothing_even_without_the_namespace(cluster: Plugin) -> None:
    done = cluster("install", "--dry-run", "server", "--diff")
    assert done.status == 0, done.err
    assert "deployment.apps/pacto-operator created (server dry run)" in done.out
    assert "+++ b/deployment.apps/pacto-operator" in done.out
    assert not [path for path in cluster.api.objects if "pacto" in path]


def test_a_diff_leaves_out_what_the_server_fills_in(cluster: Plugin) -> None:
    cluster("install")
    stored = cluster.api.objects[DEPLOYMENT]
    cluster.api.put(DEPLOYMENT, {**stored, "spec": {**stored["spec"], "progressDeadlineSeconds": 600}})
    done = cluster("install", "--diff", "--set", "replicas=3", "--no-wait")
    changed = [
        line
        for line in done.out.splitlines()
        if line.startswith(("-", "+")) and line[:3] not in ("---", "+++")
    ]
    assert changed == ["-  replicas: 1", "+  replicas: 3"]


def test_waiting_names_what_is_missing_and_why(cluster: Plugin) -> None:
    cluster("install")
    cluster.api.ready = False
    stored = cluster.api.objects[DEPLOYMENT]
    cluster.api.put(DEPLOYMENT, {**stored, "status": {}})
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    cluster.api.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "pacto-operator-x",
                "namespace": "pacto-operator-system",
                "labels": {"app.kubernetes.io/name": "pacto-operator"},
            },
            "spec": {"nodeName": "node-a"},
            "status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]},
        }
    )
    done = cluster("install", "--timeout", "500ms")
    assert done.status == 1
    why = "0 of 1 ready: pod pacto-operator-x on node-a: ImagePullBackOff (no such image)"
    assert f"error: not ready after 0.5s: deployment.apps/pacto-operator ({why})" in done.err
    assert f"waiting for deployment.apps/pacto-operator ({why})" in done.err


def test_a_finalizer_that_keeps_something_is_named(cluster: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster("install")
    answer = cluster.api.answer
    namespace = "/api/v1/namespaces/pacto-operator-system"

    def keep(method: str, path: str, accept: str, body: Raw | None) -> tuple[int, Any]:
        if method == "DELETE" and path.startswith(f"{namespace}?"):
            kept = {**cluster.api.objects[namespace], "spec": {"finalizers": ["kubernetes"]}}
            return 200, cluster.api.put(namespace, kept)
        return answer(method, path, accept, body)

    monkeypatch.setattr(cluster.api, "answer", keep)
    done = cluster("uninstall", "--yes", "--timeout", "50ms")
    assert done.status == 1
    assert "still there: namespace/pacto-operator-system (finalizers: kubernetes)" in done.err


def test_preflight_stops_before_anything_is_made_and_can_be_skipped(cluster: Plugin) -> None:
    cluster.api.put("/version", {"gitVersion": "v1.29.3-eks-1"})
    cluster.api.denied = {"clusterroles"}
    done = cluster("install")
    assert done.status == 1
    assert "api-version" in done.err
    assert "not allowed: create clusterroles.rbac.authorization.k8s.io" in done.err
    assert not cluster.api.writes
    assert cluster("install", "--skip-checks").status == 0


def test_a_newer_installation_is_not_downgraded_unasked(
    cluster: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_pacto.cli.install.release.__version__", "9.0.0")
    cluster("install")
    monkeypatch.setattr("kubectl_pacto.cli.install.release.__version__", "0.1.0")
    assert "version 9.0.0 is installed" in cluster("upgrade").err
    assert cluster("upgrade", "--allow-downgrade").status == 0


def test_values_merge_as_helm_merges_them(tmp_path: Any) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("nodeAgent: {enabled: true, mapper: proc}\nlist: [1]\n")
    second.write_text("nodeAgent: {mapper: iter}\nlist: [2]\n")
    values = read_values(
        [str(first), str(second)], ["nodeAgent.resources.limits.cpu=200m", "list=null", "n=3"]
    )
    assert values == {
        "nodeAgent": {"enabled": True, "mapper": "iter", "resources": {"limits": {"cpu": "200m"}}},
        "list": None,
        "n": 3,
    }


def test_a_service_monitor_needs_somebody_who_serves_them(bare: Plugin) -> None:
    prepare(bare.api)
    words = ["install", "--no-wait", "--set", "metrics.serviceMonitor.enabled=true"]
    done = bare(*words)
    assert done.status == 2
    assert "does not serve monitoring.coreos.com/v1" in done.err
    assert not bare.api.writes
    bare.api.put("/apis/monitoring.coreos.com/v1", {"resources": [{"name": "servicemonitors"}]})
    assert "servicemonitor.monitoring.coreos.com/pacto-operator-metrics created" in bare(*words).out


def test_a_null_on_the_command_line_takes_a_bound_of_a_file_away(bare: Plugin, tmp_path: Any) -> None:
    (tmp_path / "a.yaml").write_text("resources: {limits: {cpu: 2, memory: 1Gi}}\n")
    words = ["-f", str(tmp_path / "a.yaml"), "--set", "resources.limits.cpu=null,controller.workers=null"]
    printed = list(yaml.safe_load_all(bare("install", "-o", "yaml", *words).out))
    (deployment,) = [one for one in printed if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert "--workers=4" in container["args"]


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("a.b=1,a.c=x", {"a": {"b": 1, "c": "x"}}),
        ("a=true,b=false,c=0,d=-3", {"a": True, "b": False, "c": 0, "d": -3}),
        ("a=007,b=1.30,c=1e3,d=99999999999999999999", {"a": "007", "b": "1.30", "c": "1e3", "d": "9" * 20}),
        ("a={x,y,3},b={}", {"a": ["x", "y", 3], "b": []}),
        ("a=one\\,two", {"a": "one,two"}),
        ("labels.kubernetes\\.io/os=linux", {"labels": {"kubernetes.io/os": "linux"}}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("image=r.example:5000/p@sha256:0a", {"image": "r.example:5000/p@sha256:0a"}),
    ],
)
def test_a_setting_is_read_as_helm_reads_it(setting: str, values: Raw) -> None:
    assert read_values([], [setting]) == values


def test_an_index_says_how_a_list_is_written() -> None:
    with pytest.raises(UsageError, match="write a list as"):
        read_values([], ["a[0]=1"])


@pytest.mark.parametrize("setting", ["x", "=1", "a..b=1", "a=1,b", "a=1,,b=2"])
def test_a_setting_that_is_none_is_wrong_usage(setting: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        read_values([], [setting])


def test_every_kind_that_is_installed_has_a_path() -> None:
    paths = [path_of(raw) for raw in before_the_agent(NodeAgentValues())]
    assert (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pacto-node-agent-own-node" in paths
    )


def test_the_whole_release_installs_says_what_it_is_and_goes_again(
    bare: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(bare.api)
    monkeypatch.setattr(wait, "POLL_SECONDS", 0.01)
    done = bare("install", "--node-agent", "--enable-probing", "--set", "nodeAgent.mapper=iter")
    assert done.status == 0, done.err
    container = bare.api.objects[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
    assert "--enable-probing" in " ".join([*container.get("command", []), *container.get("args", [])])
    assert bare("status", "-A").out.startswith("Operator     1/1 ready, pacto-operator-system/pacto-operator")
    assert {line.rpartition(" ")[2] for line in bare("install").out.splitlines()} == {"unchanged"}
    assert bare("uninstall", "--yes", "--delete-crds").status == 0
    assert not [path for path in bare.api.objects if "pacto" in path]


def test_a_value_that_is_none_is_wrong_usage(bare: Plugin) -> None:
    done = bare("install", "-o", "yaml", "--set", "nodeAgent.bogus=1")
    assert done.status == 2
    assert "bogus" in done.err
