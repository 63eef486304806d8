# SPDX-License-Identifier: MIT
"""What the API server forbids: RBAC, Pod Security, and a policy over the node claim of a pod's token."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster import manifests
from tests.cluster.api import ApiError, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live

pytestmark = pytest.mark.cluster
FORBIDDEN = 403


def role(namespace: str, name: str, rules: list[Object]) -> list[Object]:
    """A ServiceAccount that may do this in its namespace."""
    metadata = {"name": name, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def lease(namespace: str, name: str) -> Object:
    """An object named after a node."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {},
    }


def test_a_role_allows_what_it_names_and_nothing_else(
    api_server: Live, namespace: str, wait_for: WaitFor
) -> None:
    """A token of a ServiceAccount that may read ConfigMaps."""
    rules: list[Object] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    api_server.api.apply(*role(namespace, "reader", rules))
    reader = api_server.as_token(api_server.token(namespace, "reader"))
    # the authorizer follows the roles, a moment behind
    wait_for(lambda: reader.items("v1", "ConfigMap", namespace), 30, "the role in force")
    for kind, where in (("Secret", namespace), ("ConfigMap", "kube-system")):
        with pytest.raises(ApiError) as refusal:
            reader.items("v1", kind, where)
        assert refusal.value.status == FORBIDDEN


def test_the_agents_pod_needs_a_privileged_namespace(
    api_server: Live, namespace: str, wait_for: WaitFor
) -> None:
    """Baseline refuses host access, and names each reason."""
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
    api_server.api.patch("v1", "Namespace", namespace, labels)
    template = manifests.agent(namespace)["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent", "namespace": namespace},
        "spec": template["spec"],
    }
    path = api_server.api.path("v1", "Pod", namespace)

    def refusal() -> str:
        """Why the pod is not let in: the labels of a namespace are followed, a moment behind."""
        try:
            api_server.api.raw("POST", f"{path}?dryRun=All", json.dumps(pod))
        except ApiError as error:
            return str(error)
        return ""

    said = wait_for(refusal, 30, "a refusal")
    for reason in ("PodSecurity", "host namespaces", "hostPath", "non-default capabilities"):
        assert reason in said
    api_server.api.apply(manifests.privileged(namespace))
    assert wait_for(lambda: api_server.api.create(pod), 30, "the pod let in")["metadata"]["uid"]


ADMISSION = "admissionregistration.k8s.io/v1"
CLAIM = "authentication.kubernetes.io/node-name"


def own_node_only(namespace: str) -> Object:
    """A policy under which the writer of a namespace touches only the Lease of its token's node."""
    leases = {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["leases"],
    }
    writer = f"request.userInfo.username == 'system:serviceaccount:{namespace}:writer'"
    rule = {
        "expression": f"request.userInfo.extra[?'{CLAIM}'].orValue([]) == [object.metadata.name]",
        "message": "not the object of this token's node",
    }
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [leases]},
            "matchConditions": [{"name": "writer", "expression": writer}],
            "validations": [rule],
        },
    }


@pytest.fixture
def node_policy(api_server: Live, namespace: str) -> Iterator[str]:
    """The policy, in force while the test runs."""
    binding: Object = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    }
    api_server.api.apply(own_node_only(namespace), binding)
    yield namespace
    api_server.api.delete(ADMISSION, "ValidatingAdmissionPolicyBinding", namespace)
    api_server.api.delete(ADMISSION, "ValidatingAdmissionPolicy", namespace)


def test_a_pods_token_names_its_node_to_a_policy(cluster: Live, node_policy: str, wait_for: WaitFor) -> None:
    """The pod's token passes for its own node's name alone; one without the claim never passes."""
    namespace, node = node_policy, cluster.nodes[0]
    rules: list[Object] = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "update", "get"]}
    ]
    cluster.api.apply(*role(namespace, "writer", rules))
    container = manifests.container("silent", port=0)
    cluster.api.apply(
        manifests.pod(namespace, "writer", [container], nodeName=node, serviceAccountName="writer")
    )
    wait_for(lambda: manifests.ready(cluster.pods(namespace)[0]), 90, "the writer's pod")
    path = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    of_pod = cluster.as_token(cluster.in_pod(namespace, "writer", "cat", path))
    of_nobody = cluster.as_token(cluster.token(namespace, "writer"))

    def denied() -> bool:
        """A new policy takes a moment to be enforced."""
        try:
            of_nobody.create(lease(namespace, "probe"))
        except ApiError as error:
            return "this token's node" in str(error)
        cluster.api.delete("coordination.k8s.io/v1", "Lease", "probe", namespace)
        return False

    wait_for(denied, 30, "the policy in force")
    made = of_pod.create(lease(namespace, node))
    made["spec"]["leaseDurationSeconds"] = 90
    made = of_pod.replace(made)
    assert made["spec"]["leaseDurationSeconds"] == 90
    for api, name in ((of_pod, cluster.nodes[1]), (of_nobody, node), (of_nobody, cluster.nodes[1])):
        with pytest.raises(ApiError, match="this token's node"):
            api.create(lease(namespace, name)) if name != node else api.replace(made)


def test_the_admin_may_do_everything_and_says_who_it_is(api_server: Live) -> None:
    """The kubeconfig that other tests rely on."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = json.loads(api_server.api.raw("POST", path, json.dumps(review)))
    assert (
        "system:masters" in answer["status"]["userInfo"]["groups"] or api_server.provider.provider == "kind"
    )
