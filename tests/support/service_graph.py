# SPDX-License-Identifier: MIT
"""Objects of a cluster in which services call each other: declared or not, answered or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

Raw = dict[str, Any]
PACTO: Final = "pacto.trianalab.io/v1alpha1"
LABELS: Final = {"app.kubernetes.io/name": "pacto-node-agent", "app.kubernetes.io/part-of": "pacto"}
AT: Final = "2026-10-18T09:12:44Z"
RECENT: Final = "2026-10-18T09:12:30Z"
STARTED: Final = "2026-10-18T08:00:00Z"


@dataclass(frozen=True)
class Shop:
    """Services by name: what each declares, whom each calls with success, with failure."""

    declared: dict[str, Sequence[str]]
    calls: dict[str, Sequence[str]] = field(default_factory=dict)
    fails: dict[str, Sequence[str]] = field(default_factory=dict)
    absent: Sequence[str] = ()  # do not listen
    namespace: str = "shop"

    def objects(self) -> list[Raw]:
        """All objects; a name that no service has is a dependency that resolves to nothing."""
        made: list[Raw] = []
        for number, name in enumerate(self.declared, start=1):
            made += self._service(name, number)
        views = [self._view(name, number) for number, name in enumerate(self.declared, start=1)]
        nodes = [views[::2], views[1::2]]
        for letter, some in zip("ab", nodes, strict=True):
            made += node(f"node-{letter}", some)
        made.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-c", "labels": LINUX}})
        return made

    def text(self) -> str:
        """The objects as YAML."""
        return yaml.safe_dump_all(self.objects(), sort_keys=False)

    def _service(self, name: str, number: int) -> list[Raw]:
        return [
            self._pacto(name),
            self._front(name, number),
            self._slice(name, number),
            self._workload(name, number),
            self._pod(name, number),
        ]

    def _contract(self, name: str) -> str:
        contract: Raw = {
            "pactoVersion": "2.0",
            "service": {"name": name, "version": "1.0.0"},
            "interfaces": [{"name": "api", "type": "openapi", "ref": "openapi.yaml"}],
        }
        if self.declared[name]:
            fixed = {"compatibility": "^1.0.0", "required": True}
            contract["dependencies"] = [
                {"name": one, "ref": f"oci://example.com/{one}:1.0.0", **fixed} for one in self.declared[name]
            ]
        return yaml.safe_dump(contract, sort_keys=False)

    def _metadata(self, name: str, **more: Any) -> Raw:
        return {"name": name, "namespace": self.namespace, **more}

    def _pacto(self, name: str) -> Raw:
        subjects = [("interface", "api"), *(("dependency", one) for one in self.fails.get(name, ()))]
        windows = [
            {"kind": kind, "subject": subject, "firstObservedNegativeAt": "2026-10-18T09:10:00Z"}
            for kind, subject in subjects
        ]
        target = {
            "serviceName": name,
            "workloadRef": {"kind": "Deployment", "name": name},
            "interfaceBindings": [{"interface": "api", "servicePort": 80}],
        }
        return {
            "apiVersion": PACTO,
            "kind": "Pacto",
            "metadata": self._metadata(name, labels={"team": "shop"}),
            "spec": {"contractRef": {"inline": self._contract(name)}, "target": target},
            "status": {
                "contract": {"serviceName": name, "version": "1.0.0"},
                "observationWindows": windows,
            },
        }

    def _front(self, name: str, number: int) -> Raw:
        address = f"10.96.0.{number}"
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._metadata(name, creationTimestamp=STARTED),
            "spec": {
                "selector": {"app": name},
                "clusterIP": address,
                "clusterIPs": [address],
                "type": "ClusterIP",
                "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
            },
        }

    def _slice(self, name: str, number: int) -> Raw:
        pod = {"kind": "Pod", "name": f"{name}-0", "namespace": self.namespace, "uid": f"uid-{number}"}
        endpoint = {"addresses": [f"10.1.0.{number}"], "conditions": {"ready": True}, "targetRef": pod}
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": self._metadata(name, labels={"kubernetes.io/service-name": name}),
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [endpoint],
        }

    def _workload(self, name: str, number: int) -> Raw:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self._metadata(name, uid=f"deploy-{number}"),
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
            "status": {"replicas": 1, "readyReplicas": 1},
        }

    def _pod(self, name: str, number: int) -> Raw:
        host = "node-a" if number % 2 else "node-b"
        main = {"name": "main", "ports": [{"containerPort": 8080}]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self._metadata(f"{name}-0", uid=f"uid-{number}", labels={"app": name}),
            "spec": {"nodeName": host, "containers": [main]},
            "status": {
                "phase": "Running",
                "startTime": STARTED,
                "podIP": f"10.1.0.{number}",
                "podIPs": [{"ip": f"10.1.0.{number}"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def _view(self, name: str, number: int) -> Raw:
        at = {other: position for position, other in enumerate(self.declared, start=1)}
        peers = [
            {"address": f"10.96.0.{at[one]}", "port": 80, "succeeded": 3, "lastSuccess": RECENT}
            for one in self.calls.get(name, ())
        ] + [
            {
                "address": f"10.96.0.{at[one]}",
                "port": 80,
                "failed": 9,
                "lastFailure": RECENT,
                "failureReason": "refused",
            }
            for one in self.fails.get(name, ())
        ]
        return {
            "uid": f"uid-{number}",
            "baselineAt": "2026-10-18T09:10:00Z",
            "complete": name != "search",
            "reasons": ["Truncated"] if name == "search" else [],
            "listeners": [] if name in self.absent else [{"address": "0.0.0.0", "port": 8080}],
            "peers": peers,
        }


LINUX: Final = {"kubernetes.io/os": "linux"}


def node(name: str, views: list[Raw]) -> list[Raw]:
    """A node with its agent's object and heartbeat."""
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": LINUX}},
        {
            "apiVersion": PACTO,
            "kind": "NodeRuntimeObservation",
            "metadata": {"name": name, "namespace": "pacto-node-agent", "labels": LABELS},
            "nodeName": name,
            "lastPublished": RECENT,
            "collection": {"state": "Running", "connectionsSince": STARTED},
            "node": {"kernelRelease": "6.8.0", "agentVersion": "0.1.0", "mapper": "iter"},
            "pods": views,
        },
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "pacto-node-agent"},
            "spec": {"renewTime": "2026-10-18T09:12:40Z", "leaseDurationSeconds": 90},
        },
    ]


def small() -> Shop:
    """Three services, and one arrow of each state that is wrong."""
    return Shop(
        {"web": ["orders", "billing"], "orders": ["stock", "web"], "stock": []},
        calls={"web": ["orders"]},
        fails={"orders": ["stock"]},
        absent=["stock"],
    )


def large(count: int = 60) -> Shop:
    """Sixty services in five tiers; some call what they do not declare, some fail, some are alone."""
    names = [f"{TIERS[number % len(TIERS)]}-{number:02}" for number in range(count)]
    declared: dict[str, Sequence[str]] = {name: [] for name in names}
    calls: dict[str, Sequence[str]] = {}
    fails: dict[str, Sequence[str]] = {}
    for number, name in enumerate(names[: count - 6]):
        tier = number % len(TIERS)
        below = [one for at, one in enumerate(names[: count - 6]) if at % len(TIERS) > tier]
        if not below:
            continue
        chosen = sorted({below[(number * 7 + step * 11) % len(below)] for step in range(1 + number % 3)})
        declared[name] = chosen
        calls[name] = chosen[: len(chosen) - (number % 4 == 0)]
        if number % 13 == 5:
            fails[name] = chosen[:1]
            calls[name] = chosen[1:]
        if number % 9 == 4:
            calls[name] = [*calls[name], below[(number * 3 + 1) % len(below)]]
    return Shop(declared, calls, fails, absent=[name for name in names if name.endswith("7")])


TIERS: Final = ("edge", "front", "core", "data", "store")
