# SPDX-License-Identifier: MIT
"""Nodes without machines: the scheduler binds pods to them, and this says that they run.

No kubelet and no container: what pods do is what a test writes into the node objects. A thread renews
the nodes' own heartbeats and, unless a test freezes them, those of the agents.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Final

from tests.cluster.api import Api, ApiError, Object

TICK: Final = 0.25
LEASE_SECONDS: Final = 8
LABELS: Final = {"app.kubernetes.io/name": "pacto-node-agent", "app.kubernetes.io/part-of": "pacto"}
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces"


def stamp(offset: float = 0.0) -> str:
    """A time of the API, so many seconds from now."""
    whole, part = divmod(time.time() + offset, 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int(part * 1e6):06d}Z"


class Machines:
    """Nodes of a test session, their pods, and the agents' objects in one namespace."""

    def __init__(self, api: Api, agents: str) -> None:
        self.api = api
        self.agents = agents
        self.names: list[str] = []
        self.frozen: set[str] = set()
        self.skew = 0.0
        self.sockets: dict[str, dict[str, Any]] = {}  # app -> listeners and peers of its pods
        self._stop = threading.Event()
        self._written: dict[str, Object] = {}
        self._addresses: dict[str, str] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, *names: str) -> None:
        """Create the nodes."""
        for name in names:
            self.api.create(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}},
                }
            )
            self.names.append(name)
            status = {
                "capacity": {"cpu": "64", "memory": "64Gi", "pods": "500"},
                "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
            }
            self._status(f"/api/v1/nodes/{name}", status)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and remove the nodes."""
        self._stop.set()
        self._thread.join(10)
        for name in self.names:
            with contextlib.suppress(ApiError):
                self.api.delete("v1", "Node", name)

    def says(self, app: str, *, listens: list[int] | None = None, peers: list[Object] | None = None) -> None:
        """What the agents see of the pods labelled app=APP, from the next tick on."""
        ports = [] if listens is None else listens
        with self._lock:
            self.sockets[app] = {
                "listeners": [{"address": "0.0.0.0", "port": port} for port in ports],
                "peers": peers or [],
            }

    def _run(self) -> None:
        while not self._stop.wait(TICK):
            with contextlib.suppress(ApiError, OSError):
                self._tick()

    def _tick(self) -> None:
        pods = [pod for pod in self.api.items("v1", "Pod") if pod["spec"].get("nodeName") in self.names]
        for pod in pods:
            self._play(pod)
        for name in self.names:
            self._renew("kube-node-lease", name, 40)
            if name not in self.frozen:
                self._publish(name, [pod for pod in pods if pod["spec"]["nodeName"] == name])
                self._renew(self.agents, name, LEASE_SECONDS, self.skew)

    def _play(self, pod: Object) -> None:
        """What a kubelet says of a pod."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            self.api.raw("DELETE", f"{path}?gracePeriodSeconds=0")
            return
        if pod["status"].get("phase") == "Running":
            return
        address = self._addresses.setdefault(metadata["uid"], f"10.99.0.{len(self._addresses) % 250 + 1}")
        now = stamp(self.skew)[:19] + "Z"  # by the node's clock, as a kubelet has it
        status = {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "x",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                }
                for container in pod["spec"]["containers"]
            ],
        }
        self._status(path, status)

    def _publish(self, node: str, pods: list[Object]) -> None:
        with self._lock:
            views = [
                {
                    "uid": pod["metadata"]["uid"],
                    "baselineAt": stamp(self.skew + 1),
                    "complete": True,
                    "reasons": [],
                    **self.sockets[pod["metadata"]["labels"]["app"]],
                }
                for pod in pods
                if pod["metadata"].get("labels", {}).get("app") in self.sockets
            ]
        known = {view["uid"]: view for view in self._written.get(node, {}).get("pods", [])}
        for view in views:
            view["baselineAt"] = known.get(view["uid"], view)["baselineAt"]
        body: Object = {
            "apiVersion": "pacto.trianalab.io/v1alpha1",
            "kind": "NodeRuntimeObservation",
            "metadata": {"name": node, "namespace": self.agents, "labels": LABELS},
            "nodeName": node,
            "collection": {"state": "Running", "connectionsSince": stamp(self.skew - 3600)},
            "pods": views,
        }
        if self._written.get(node, {}).get("pods") == views:
            return
        path = f"/apis/pacto.trianalab.io/v1alpha1/namespaces/{self.agents}/noderuntimeobservations"
        self._put(path, node, body)
        self._written[node] = body

    def _renew(self, namespace: str, name: str, seconds: int, skew: float = 0.0) -> None:
        spec = {"holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": stamp(skew)}
        metadata = {"name": name, "namespace": namespace}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        self._put(f"{LEASES}/{namespace}/leases", name, body)

    def _put(self, path: str, name: str, body: Object) -> None:
        import json

        try:
            found = json.loads(self.api.raw("GET", f"{path}/{name}"))
        except ApiError as error:
            if error.status != 404:
                raise
            self.api.raw("POST", path, json.dumps(body))
            return
        metadata = {**body["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
        self.api.raw("PUT", f"{path}/{name}", json.dumps({**body, "metadata": metadata}))

    def _status(self, path: str, status: Object) -> None:
        import json

        body = json.dumps({"status": status})
        self.api.raw("PATCH", f"{path}/status", body, "application/strategic-merge-patch+json")
