# SPDX-License-Identifier: MIT
"""The demo's cluster: bundled Kubernetes objects, filled in with what its real pods are.

The files hold what people and controllers would have written; what kubelet and the endpoint
controller write comes from the processes. Statuses are carried from pass to pass, as an operator's
are: observation windows live there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

import yaml

from kubectl_pacto.model.instant import format_instant

NAMESPACE: Final = "shop"
PORT: Final = 8080

Raw: TypeAlias = dict[str, Any]
Name: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class App:
    """One application of the demo: what its pod does, which is not always what its contract says."""

    name: str
    address: str
    serves: bool = False
    calls: tuple[str, ...] = ()


APPS: Final = (
    App("payments", "10.244.7.11", serves=True),
    App("inventory", "10.244.7.12"),
    App("audit", "10.244.7.13", serves=True),
    App("orders", "10.244.7.14", calls=("payments", "inventory", "audit")),
)
ADDRESSES: Final = {app.name: app.address for app in APPS}


@dataclass(frozen=True, slots=True)
class LivePod:
    """What kubelet would report of a running pod; `started` in POSIX seconds."""

    uid: str
    node: str
    address: str
    container: str
    started: float
    ready: bool = False


@cache
def _bundled(app: str) -> tuple[Raw, ...]:
    text = resources.files(__package__).joinpath("manifests", f"{app}.yaml").read_text(encoding="utf-8")
    return tuple(yaml.load_all(text, yaml.SafeLoader))


def bundled() -> list[Raw]:
    """All bundled objects, as they are in the files."""
    return [copy.deepcopy(item) for app in APPS for item in _bundled(app.name)]


def cluster_objects(pods: Mapping[str, LivePod], statuses: Mapping[Name, Raw]) -> list[Raw]:
    """The bundled objects with each app's pod filled in and each Pacto's last status."""
    objects = bundled()
    names = {
        item["metadata"]["labels"]["app"]: item["metadata"]["name"]
        for item in objects
        if item["kind"] == "Pod"
    }
    for item in objects:
        metadata = item["metadata"]
        match item["kind"]:
            case "Pod":
                _fill_pod(item, pods[metadata["labels"]["app"]])
            case "EndpointSlice":
                app = metadata["labels"]["kubernetes.io/service-name"]
                item["endpoints"] = [_endpoint(names[app], pods[app])]
            case "Pacto":
                name = (metadata["namespace"], metadata["name"])
                if name in statuses:
                    item["status"] = statuses[name]
            case _:
                pass
    return objects


def _fill_pod(item: Raw, pod: LivePod) -> None:
    started, ready = format_instant(pod.started), pod.ready
    item["metadata"]["uid"] = pod.uid
    item["spec"]["nodeName"] = pod.node
    item["status"] = {
        "phase": "Running",
        "startTime": started,
        "podIP": pod.address,
        "podIPs": [{"ip": pod.address}],
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [
            {
                "name": item["spec"]["containers"][0]["name"],
                "containerID": f"demo://{pod.container}",
                "ready": ready,
                "restartCount": 0,
                "state": {"running": {"startedAt": started}},
            }
        ],
    }


def _endpoint(name: str, pod: LivePod) -> Raw:
    return {
        "addresses": [pod.address],
        "conditions": {"ready": pod.ready},
        "nodeName": pod.node,
        "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": name, "uid": pod.uid},
    }


def statuses_of(results: Iterable[Raw]) -> dict[Name, Raw]:
    """The statuses that `evaluate -o json` gives, by namespace and name."""
    return {(item["namespace"], item["name"]): item["status"] for item in results}
