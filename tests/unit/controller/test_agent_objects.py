# SPDX-License-Identifier: MIT
"""The node agent's objects ask for exactly what the specification says, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubectl_pacto.controller.manifests import agent_objects
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues

DEFAULTS = NodeAgentValues()


def pod(values: NodeAgentValues = DEFAULTS) -> dict[str, Any]:
    spec: dict[str, Any] = agent_objects.daemon_set(values)["spec"]["template"]["spec"]
    return spec


def container(values: NodeAgentValues = DEFAULTS) -> dict[str, Any]:
    (only,) = pod(values)["containers"]
    found: dict[str, Any] = only
    return found


@pytest.mark.parametrize(
    ("values", "capabilities"),
    [
        (DEFAULTS, ["BPF", "PERFMON", "SYS_PTRACE"]),
        (replace(DEFAULTS, mapper="proc"), ["BPF", "PERFMON", "SYS_PTRACE"]),
        (replace(DEFAULTS, mapper="iter"), ["BPF", "PERFMON"]),
        (replace(DEFAULTS, sys_resource=True), ["BPF", "PERFMON", "SYS_PTRACE", "SYS_RESOURCE"]),
    ],
)
def test_capabilities_are_exactly_the_needed_ones(values: NodeAgentValues, capabilities: list[str]) -> None:
    assert container(values)["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": capabilities}


def test_the_container_is_as_confined_as_its_work_allows() -> None:
    security = container()["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["privileged"] is False
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["appArmorProfile"] == {"type": "Unconfined"}
    assert pod()["hostPID"] is True
    assert "hostNetwork" not in pod()
    assert "ports" not in container()


def test_the_only_host_path_is_the_cgroup_tree_read_only() -> None:
    assert [one["hostPath"]["path"] for one in pod()["volumes"]] == ["/sys/fs/cgroup"]
    (mount,) = container()["volumeMounts"]
    assert mount["readOnly"] is True
    assert mount["mountPath"] in container()["args"]


def test_the_agent_runs_on_every_linux_node() -> None:
    assert pod()["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert pod()["tolerations"] == [{"operator": "Exists"}]
    chosen = pod(replace(DEFAULTS, node_selector={"pool": "a"}))["nodeSelector"]
    assert chosen == {"kubernetes.io/os": "linux", "pool": "a"}


def test_resources_are_the_specification_s() -> None:
    assert container()["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"cpu": "200m", "memory": "256Mi"},
    }


def test_a_priority_class_is_set_only_when_given() -> None:
    assert "priorityClassName" not in pod()
    assert pod(replace(DEFAULTS, priority_class_name="system-node-critical"))["priorityClassName"]


def test_the_role_writes_two_kinds_and_deletes_lists_and_watches_none() -> None:
    rules = agent_objects.role(DEFAULTS)["rules"]
    assert {resource for rule in rules for resource in rule["resources"]} == {
        "noderuntimeobservations",
        "leases",
    }
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "create", "update"}


def test_everything_that_guards_the_agent_exists_before_it() -> None:
    kinds = [one["kind"] for one in agent_objects.before_the_agent(DEFAULTS)]
    assert kinds == [
        "Namespace",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]


def test_only_the_agent_s_namespace_is_privileged() -> None:
    labels = agent_objects.namespace(replace(DEFAULTS, namespace="other"))["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_the_policy_matches_the_very_service_account_of_the_daemonset() -> None:
    values = replace(DEFAULTS, namespace="elsewhere")
    policy = agent_objects.admission_policy(values)["spec"]
    account = agent_objects.service_account(values)["metadata"]
    name = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    assert policy["matchConditions"][0]["expression"] == f"request.userInfo.username == '{name}'"
    assert pod(values)["serviceAccountName"] == account["name"]
    assert agent_objects.admission_binding()["spec"]["policyName"] == agent_objects.POLICY
    assert policy["failurePolicy"] == "Fail"


def test_the_agent_gets_its_node_namespace_and_pod_from_the_downward_api() -> None:
    taken = [one for one in container()["env"] if "valueFrom" in one]
    fields = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in taken}
    assert fields == {
        "NODE_NAME": "spec.nodeName",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_UID": "metadata.uid",
    }


def test_the_seccomp_profile_is_a_value() -> None:
    chosen = container(replace(DEFAULTS, seccomp_profile="Unconfined"))["securityContext"]
    assert chosen["seccompProfile"] == {"type": "Unconfined"}


def test_no_probe_ends_an_agent_that_reads_its_first_baseline() -> None:
    assert not {name for name in container() if name.endswith("Probe")}


@pytest.mark.parametrize(("interval", "seconds"), [("30s", 30), ("2s", 2), ("1500ms", 2), ("5m", 30)])
def test_a_rollout_waits_for_a_publication_before_the_next_node(interval: str, seconds: int) -> None:
    """Without it a release whose agents end at once is on every node within moments."""
    made = agent_objects.daemon_set(replace(DEFAULTS, publish_interval=interval))
    assert made["spec"]["minReadySeconds"] == seconds
