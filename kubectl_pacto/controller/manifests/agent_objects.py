# SPDX-License-Identifier: MIT
"""The objects of the node agent: namespace, identity, rights, admission policy, DaemonSet.

One source for the plugin, the chart and the operator. Pure: values in, objects out, in the order in
which they must exist.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Final

from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.model.duration import parse_duration
from kubectl_pacto.model.group import GROUP
from kubectl_pacto.model.node import AGENT_LABELS

NAME: Final = "pacto-node-agent"
POLICY: Final = "pacto-node-agent-own-node"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "pacto-operator"
HASH: Final = "pacto.trianalab.io/spec-hash"
NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"
PRIVILEGED: Final = {
    f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "warn", "audit")
}
# The C library then gives memory back after each publication: a tenth of what is resident.
MALLOC_SETTINGS: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
MALLOC_BYTES: Final = 65536
# The longest that a rollout waits on a node before it goes on to the next, in seconds.
WAITED_AT_MOST: Final = 30.0
NO_CLAIM: Final = (
    "the token names no node: an agent needs its pod's projected token, Kubernetes 1.30 or later"
)


def before_the_agent(values: NodeAgentValues) -> list[dict[str, Any]]:
    """What the chart and the plugin create: everything that must be there before an agent runs."""
    return [
        namespace(values),
        service_account(values),
        role(values),
        role_binding(values),
        admission_policy(values),
        admission_binding(),
    ]


def namespace(values: NodeAgentValues) -> dict[str, Any]:
    """The agent's own namespace: only the privileged level admits hostPID and its capabilities."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": values.namespace, "labels": {**AGENT_LABELS, **PRIVILEGED}},
    }


def service_account(values: NodeAgentValues) -> dict[str, Any]:
    """The agents' identity."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(values)}


def role(values: NodeAgentValues) -> dict[str, Any]:
    """Write node objects and Leases in this namespace; nothing is listed, watched or deleted."""
    verbs = ["get", "create", "update"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _metadata(values),
        "rules": [
            {"apiGroups": [GROUP], "resources": ["noderuntimeobservations"], "verbs": verbs},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs},
        ],
    }


def role_binding(values: NodeAgentValues) -> dict[str, Any]:
    """The agents hold their Role."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(values),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": values.namespace}],
    }


def admission_policy(values: NodeAgentValues) -> dict[str, Any]:
    """Ties each agent to the objects named after its own node, by the node claim of its token.

    The policy exists because RBAC cannot restrict a create by name. A token without the claim, as
    `kubectl create token` makes one, can write nothing.
    """
    operations = ["CREATE", "UPDATE", "DELETE"]
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": operations,
            "resources": [resource],
            "scope": "Namespaced",
        }
        for group, resource in ((GROUP, "noderuntimeobservations"), ("coordination.k8s.io", "leases"))
    ]
    agent = f"system:serviceaccount:{values.namespace}:{NAME}"
    claim = f"request.userInfo.extra['{NODE_CLAIM}'][0]"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY, "labels": dict(AGENT_LABELS)},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [
                {"name": "is-a-node-agent", "expression": f"request.userInfo.username == '{agent}'"}
            ],
            "variables": [
                {"name": "node", "expression": f"'{NODE_CLAIM}' in request.userInfo.extra ? {claim} : ''"}
            ],
            "validations": [
                {
                    "expression": "variables.node != ''",
                    "message": NO_CLAIM,
                    "reason": "Forbidden",
                },
                {
                    "expression": "request.name == variables.node",
                    "messageExpression": "'agent of ' + variables.node + ' may not write ' + request.name",
                    "reason": "Forbidden",
                },
            ],
        },
    }


def admission_binding() -> dict[str, Any]:
    """Without a binding a policy does nothing."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY, "labels": dict(AGENT_LABELS)},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    }


def desired(values: NodeAgentValues) -> dict[str, Any]:
    """The DaemonSet with the marks by which it is known again; any change of values changes its hash."""
    made = daemon_set(values)
    text = json.dumps(made["spec"], sort_keys=True)
    metadata = made["metadata"]
    metadata["labels"] = {**metadata["labels"], MANAGED_BY: MANAGER}
    metadata["annotations"] = {HASH: hashlib.sha256(text.encode()).hexdigest()[:32]}
    return made


def daemon_set(values: NodeAgentValues) -> dict[str, Any]:
    """One agent per Linux node.

    An agent has no probe, so it is ready as soon as it runs. A rollout goes on when it has run for a
    publish interval: by then it has published, or ended, and one that ends is not rolled out further.
    """
    waited = min(parse_duration(values.publish_interval), WAITED_AT_MOST)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(values),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
            "minReadySeconds": math.ceil(waited),
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": values.max_unavailable},
            },
            "template": {"metadata": {"labels": dict(AGENT_LABELS)}, "spec": _pod_spec(values)},
        },
    }


def _pod_spec(values: NodeAgentValues) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "serviceAccountName": NAME,
        "hostPID": True,
        "nodeSelector": {"kubernetes.io/os": "linux", **values.node_selector},
        "tolerations": values.tolerations,
        "terminationGracePeriodSeconds": 10,
        "containers": [_container(values)],
        "volumes": [{"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}}],
    }
    optional = {
        "priorityClassName": values.priority_class_name,
        "imagePullSecrets": values.image_pull_secrets,
    }
    return {**spec, **{key: value for key, value in optional.items() if value}}


def _container(values: NodeAgentValues) -> dict[str, Any]:
    intervals = ["--publish-interval", values.publish_interval, "--resync-interval", values.resync_interval]
    return {
        "name": "agent",
        "image": values.image,
        "imagePullPolicy": values.image_pull_policy,
        "command": ["pacto", "agent"],
        "args": [
            "--sink",
            "kubernetes",
            "--mapper",
            values.mapper,
            "--cgroup-root",
            "/host/cgroup",
            *intervals,
        ],
        "env": [
            _from_field("NODE_NAME", "spec.nodeName"),
            _from_field("POD_NAMESPACE", "metadata.namespace"),
            _from_field("POD_UID", "metadata.uid"),
            *({"name": name, "value": str(MALLOC_BYTES)} for name in MALLOC_SETTINGS),
        ],
        "resources": values.resources,
        "securityContext": _security_context(values),
        "volumeMounts": [{"name": "cgroup", "mountPath": "/host/cgroup", "readOnly": True}],
    }


def _security_context(values: NodeAgentValues) -> dict[str, Any]:
    return {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": values.capabilities},
        "seccompProfile": {"type": values.seccomp_profile},
        # The runtimes' default profile denies reading ns/net of other processes, SYS_PTRACE or not.
        "appArmorProfile": {"type": "Unconfined"},
    }


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _metadata(values: NodeAgentValues) -> dict[str, Any]:
    return {"name": NAME, "namespace": values.namespace, "labels": dict(AGENT_LABELS)}
