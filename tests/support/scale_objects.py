# SPDX-License-Identifier: MIT
"""A fleet as an API server would serve it: the JSON of each object, encoded once.

Pods look like real ones (managed fields, volumes, tolerations, conditions), because what they carry and
nobody needs is what a reader must drop. Times that move are spelled `NOW` and filled in when served.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.model.node import AGENT_NAMESPACE
from tests.support import builders

Raw = dict[str, Any]
NOW: Final = b"2026-10-18T09:12:44.000Z"
PODS_OF_ONE: Final = 5
PEERS: Final = 20
LISTENERS: Final = 2
START: Final = "2026-10-01T08:00:00Z"


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a fleet is; `interval` is each Pacto's seconds between checks."""

    pactos: int
    nodes: int
    namespaces: int = 200
    interval: int = 300

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return self.pactos * PODS_OF_ONE


def address(first: int, number: int) -> str:
    """The address of a number below a first octet."""
    return f"{first}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def uid(what: str, number: int) -> str:
    """A UID as the API server makes them."""
    text = f"{abs(hash_of(what)) & 0xFFFFFFFF:08x}{number:024x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"


def hash_of(text: str) -> int:
    """A hash that is the same in every process."""
    found = 0
    for letter in text:
        found = found * 31 + ord(letter)
    return found


def namespace_of(shape: Shape, number: int) -> str:
    """The namespace of a Pacto."""
    return f"team-{number % shape.namespaces}"


def node_of(shape: Shape, number: int, index: int) -> str:
    """The node of a Pacto's pod."""
    return f"node-{(number * PODS_OF_ONE + index) % shape.nodes}"


def metadata(name: str, namespace: str, identity: str, **more: Any) -> Raw:
    """What every object begins with, managed fields among it."""
    fields: Raw = {
        f"f:{key}": {".": {}, f"k:{index}": {}} for index, key in enumerate(("labels", "spec", "status"))
    }
    managed = {"manager": "controller", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {
        "name": name,
        "namespace": namespace,
        "uid": identity,
        "resourceVersion": "100",
        "creationTimestamp": START,
        "managedFields": [managed, {**managed, "subresource": "status"}],
        **more,
    }


def owner(kind: str, name: str, identity: str) -> list[Raw]:
    """A controller."""
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": identity, "controller": True}]


def pacto(shape: Shape, number: int, version: str = "1.0.0") -> Raw:
    """A Pacto that depends on the next one."""
    name, onward = f"s{number}", f"s{(number + 1) % shape.pactos}"
    contract = {"interfaces": ["api"], "dependencies": [onward], "workload": "service"}
    found = builders.pacto({"contract": contract, "target": {"serviceName": name}})
    inline = found["spec"]["contractRef"]["inline"].replace("name: shop", f"name: {name}")
    found["spec"]["contractRef"]["inline"] = inline.replace("version: 1.0.0", f"version: {version}")
    found["spec"]["checkIntervalSeconds"] = shape.interval
    found["metadata"] = metadata(name, namespace_of(shape, number), uid("pacto", number), generation=1)
    found["status"] = {}
    return found


def workloads(shape: Shape, number: int) -> tuple[Raw, Raw]:
    """A Deployment and its ReplicaSet."""
    name, namespace = f"s{number}", namespace_of(shape, number)
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec("", name)}
    spec = {"replicas": PODS_OF_ONE, "selector": {"matchLabels": {"app": name}}, "template": template}
    top = uid("deployment", number)
    deployment = {"metadata": metadata(name, namespace, top), "spec": spec}
    owners = owner("Deployment", name, top)
    between = metadata(f"{name}-rs", namespace, uid("replicaset", number), ownerReferences=owners)
    return deployment, {"metadata": between, "spec": spec}


def pod_spec(node: str, name: str) -> Raw:
    """A pod's spec, as the API server fills it in."""
    container = {
        "name": "main",
        "image": f"registry.example/platform/{name}:1.24.3",
        "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{index}", "value": f"value-{index}"} for index in range(8)],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/service", "readOnly": True},
            {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8081, "scheme": "HTTP"},
            "periodSeconds": 10,
        },
        "livenessProbe": {"httpGet": {"path": "/live", "port": 8081, "scheme": "HTTP"}, "periodSeconds": 10},
        "imagePullPolicy": "IfNotPresent",
    }
    sidecar = {"name": "log", "image": "registry.example/platform/log:2.1.0", "resources": {}}
    found: Raw = {
        "containers": [container, sidecar],
        "volumes": [
            {"name": "config", "configMap": {"name": "settings", "defaultMode": 420}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        ],
    }
    return {**found, "nodeName": node} if node else found


def pod(shape: Shape, number: int, index: int, life: int = 0) -> Raw:
    """One of a Pacto's pods; `life` tells one from its successor of the same place."""
    name, namespace = f"s{number}", namespace_of(shape, number)
    serial = number * PODS_OF_ONE + index
    running = [
        {"name": one, "ready": True, "restartCount": 0, "state": {"running": {"startedAt": START}}}
        for one in ("main", "log")
    ]
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": START}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    ip = address(11, serial)
    return {
        "metadata": metadata(
            f"{name}-{index}-{life}",
            namespace,
            uid("pod", serial + life * 10_000_000),
            labels={"app": name, "pod-template-hash": f"{number:08x}", "team": namespace},
            annotations={"prometheus.io/scrape": "true", "checksum/config": f"{number:064x}"},
            ownerReferences=owner("ReplicaSet", f"{name}-rs", uid("replicaset", number)),
        ),
        "spec": pod_spec(node_of(shape, number, index), name),
        "status": {
            "phase": "Running",
            "startTime": START,
            "hostIP": address(12, serial % shape.nodes),
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": conditions,
            "containerStatuses": running,
            "qosClass": "Burstable",
        },
    }


def service(shape: Shape, number: int) -> Raw:
    """A Pacto's Service."""
    name, namespace = f"s{number}", namespace_of(shape, number)
    found = builders.service(name, namespace, {"clusterIPs": [address(10, number)]})
    found["metadata"] = metadata(name, namespace, uid("service", number), labels={"app": name})
    return found


def endpoint_slice(shape: Shape, number: int, lives: tuple[int, ...] = (0,) * PODS_OF_ONE) -> Raw:
    """The EndpointSlice of a Pacto's Service."""
    name, namespace = f"s{number}", namespace_of(shape, number)
    items = []
    for index, life in enumerate(lives):
        serial = number * PODS_OF_ONE + index
        identity = uid("pod", serial + life * 10_000_000)
        where = {"addresses": [address(11, serial)], "pod": f"{name}-{index}-{life}", "uid": identity}
        items.append(builders.endpoint({**where, "namespace": namespace}))
    found = builders.slice_of(name, namespace, {}, items)
    labels = found["metadata"]["labels"]
    found["metadata"] = metadata(f"{name}-abcde", namespace, uid("slice", number), labels=labels)
    return found


def view(shape: Shape, number: int, index: int, life: int = 0) -> Raw:
    """What a node says of one pod: it listens, and calls the next Pacto's Service among others."""
    serial, moving = number * PODS_OF_ONE + index, NOW.decode()
    onward = address(10, (number + 1) % shape.pactos)
    calls = [(onward, 80), *((address(100 + peer, serial % 4096), 443) for peer in range(1, PEERS))]
    return {
        "uid": uid("pod", serial + life * 10_000_000),
        "baselineAt": "2026-10-01T08:00:01Z",
        "complete": True,
        "reasons": [],
        "listeners": [{"address": "0.0.0.0", "port": 8080}, {"address": "127.0.0.1", "port": 9000}],
        "peers": [
            {
                "address": ip,
                "port": port,
                "succeeded": 1000 + serial,
                "failed": 0,
                "aborted": 0,
                "lastSuccess": moving,
                "open": 1,
                "openSince": moving,
            }
            for ip, port in calls
        ],
    }


def node(name: str, views: list[Raw]) -> Raw:
    """A node's object."""
    found = builders.node(name, {"lease": False}, views)[0]
    found["metadata"] |= {"resourceVersion": "100", "uid": uid("node", hash_of(name))}
    found["lastPublished"] = NOW.decode()
    return found


def machine(name: str) -> Raw:
    """A Node, with what makes Nodes large."""
    images = [{"names": [f"registry.example/image-{index}:1"], "sizeBytes": 1 << 20} for index in range(50)]
    found = {"metadata": metadata(name, "", uid("machine", hash_of(name))), "status": {"images": images}}
    del found["metadata"]["namespace"]
    return found


def lease(name: str) -> Raw:
    """A node's heartbeat, as of when it is served."""
    spec = {"renewTime": NOW.decode(), "leaseDurationSeconds": 90, "holderIdentity": name}
    return {"metadata": metadata(name, AGENT_NAMESPACE, uid("lease", hash_of(name))), "spec": spec}


def encoded(raw: Raw) -> bytes:
    """The JSON of an object."""
    return json.dumps(raw, separators=(",", ":")).encode()
