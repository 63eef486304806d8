# SPDX-License-Identifier: MIT
"""Small clusters from a few words: what a row of a table says becomes Kubernetes objects.

A row describes one Pacto `shop` with its Service, pods and nodes, and the providers it may call.
Every time in a row is seconds before the check (negative: after it). What a row leaves out is the
dull case: a running, ready pod that listens on its port, on a node with complete coverage.
"""

from __future__ import annotations

from typing import Any

from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.conformance.check import Checked, check
from kubectl_pacto.conformance.source import Loaded, load_offline
from kubectl_pacto.engine.layers import validate
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.snapshot import Heartbeat, KernelOptions, Options

AT = 1_792_314_764.0  # 2026-10-18T09:12:44Z
NAMESPACE = "shop"
AGENT_LABELS = {"app.kubernetes.io/name": "pacto-node-agent", "app.kubernetes.io/part-of": "pacto"}
API = "pacto.trianalab.io/v1alpha1"
Row = dict[str, Any]


def ago(seconds: float) -> str:
    """The time so many seconds before the check."""
    return format_instant(AT - seconds, digits=3)


def ago_or_none(given: Row, name: str, default: float = 0.0) -> str | None:
    """The time that a row gives, or the default; None where the row gives null."""
    seconds = given.get(name, default)
    return None if seconds is None else ago(seconds)


def inline_contract(contract: Row) -> str:
    """A contract's text; interfaces and dependencies may be given as bare names."""
    import yaml

    whole: Row = {"pactoVersion": "2.0", "service": {"name": "shop", "version": "1.0.0"}}
    whole.update(contract)
    for key, spell_out in (("interfaces", _interface), ("dependencies", _dependency)):
        if key in whole:
            whole[key] = [spell_out(item) for item in whole[key]]
    return yaml.safe_dump(whole, sort_keys=False)


def _interface(item: str | Row) -> Row:
    given = {"name": item} if isinstance(item, str) else item
    return {"type": "openapi", "ref": "openapi.yaml", **given}


def _dependency(item: str | Row) -> Row:
    given = {"name": item} if isinstance(item, str) else item
    return {
        "ref": f"oci://registry.example/{given['name']}",
        "compatibility": "^1.0.0",
        "required": True,
        **given,
    }


def pacto(row: Row) -> Row:
    """The Pacto under check."""
    target: Row = {"serviceName": "shop", "interfaceBindings": [{"interface": "api", "servicePort": "http"}]}
    target.update(row.get("target", {}))
    windows = [
        {
            "kind": key.partition("/")[0],
            "subject": key.partition("/")[2],
            "firstObservedNegativeAt": ago(start),
        }
        for key, start in row.get("windows", {}).items()
    ]
    source = row.get("contractRef") or {
        "inline": inline_contract(row.get("contract", {"interfaces": ["api"]}))
    }
    spec: Row = {"contractRef": source, "target": target}
    if row.get("reference"):
        del spec["target"]
    return {
        "apiVersion": API,
        "kind": "Pacto",
        "metadata": {"name": "shop", "namespace": NAMESPACE},
        "spec": {**spec, **row.get("spec", {})},
        "status": {"contract": {"serviceName": "shop", "version": "1.0.0"}, "observationWindows": windows},
    }


def service(name: str, namespace: str, given: Row) -> Row:
    """A Service with one port unless `ports` says otherwise."""
    port = {
        "name": given.get("portName", "http"),
        "port": given.get("port", 80),
        "targetPort": given.get("target", 8080),
        "protocol": given.get("protocol", "TCP"),
    }
    spec: Row = {
        "type": given.get("type", "ClusterIP"),
        "selector": given.get("selector", {"app": name}),
        "clusterIPs": given.get("clusterIPs", []),
        "ports": given.get("ports", [port]),
        "externalIPs": given.get("externalIPs", []),
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": ago(given.get("created", 86400)),
            "annotations": given.get("annotations", {}),
            "labels": given.get("labels", {}),
        },
        "spec": spec,
        "status": {"loadBalancer": {"ingress": given.get("balancer", [])}},
    }


def slice_of(name: str, namespace: str, given: Row, endpoints: list[Row]) -> Row:
    """An EndpointSlice of a Service."""
    port: Row = {
        "name": given.get("portName", "http"),
        "port": given.get("slicePort", given.get("target", 8080)),
        "protocol": given.get("protocol", "TCP"),
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": given.get("addressType", "IPv4"),
        "metadata": {
            "name": given.get("sliceName", f"{name}-1"),
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        },
        "ports": given.get("slicePorts", [port]),
        "endpoints": endpoints,
    }


def endpoint(given: Row) -> Row:
    """An endpoint; `ready: null` is kept as such, no pod means no targetRef."""
    item: Row = {"addresses": given["addresses"], "conditions": {"ready": given.get("ready", True)}}
    if given.get("pod"):
        item["targetRef"] = {
            "kind": "Pod",
            "name": given["pod"],
            "namespace": given.get("namespace", NAMESPACE),
        }
        if given.get("uid"):
            item["targetRef"]["uid"] = given["uid"]
    return item


def pod(name: str, namespace: str, app: str, number: int, given: Row) -> Row:
    """A pod of a Deployment's ReplicaSet."""
    started: float = given.get("started", 600)
    state: Row = {"running": {"startedAt": ago(given.get("restarted", started))}}
    container: Row = {"name": "main", "ports": [{"name": "web", "containerPort": 8080}]}
    if "probe" in given:
        container["readinessProbe"] = given["probe"]
    sidecars = [{"name": item} for item in given.get("containers", [])]
    metadata: Row = {
        "name": name,
        "namespace": namespace,
        "uid": given.get("uid", f"uid-{name}"),
        "labels": given.get("labels", {"app": app}),
        "annotations": given.get("annotations", {}),
        "ownerReferences": [
            {
                "controller": True,
                **given.get("owner", {"kind": "ReplicaSet", "name": f"{app}-rs", "uid": f"{app}-rs"}),
            }
        ],
    }
    if given.get("deleting"):
        metadata["deletionTimestamp"] = ago(1)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": given.get("node", "n1"),
            "containers": [container, *sidecars],
            "initContainers": [{"name": item} for item in given.get("initContainers", [])],
            "hostNetwork": given.get("hostNetwork", False),
            "runtimeClassName": given.get("runtimeClass"),
        },
        "status": {
            "phase": given.get("phase", "Running"),
            "startTime": ago(started),
            "podIPs": [{"ip": ip} for ip in given.get("ips", [f"10.1.0.{number}"])],
            "conditions": [{"type": "Ready", "status": "True" if given.get("ready", True) else "False"}],
            "containerStatuses": [{"name": "main", "state": state}],
        },
    }


def listener(text: str) -> Row:
    """`address:port`, followed by v6only or dual where the kernel said."""
    place, *words = text.split()
    address, _, port = place.rpartition(":")
    item: Row = {"address": address.strip("[]"), "port": int(port)}
    if words:
        item["v6only"] = words[0] == "v6only"
    return item


def peer(text: str) -> Row:
    """`address:port` and what happened, each with seconds ago: ok 5 fail 10 open 30 (aborted: count)."""
    place, *words = text.split()
    address, _, port = place.rpartition(":")
    item: Row = {"address": address.strip("[]"), "port": int(port)}
    for word, number in zip(words[::2], words[1::2], strict=True):
        match word:
            case "ok":
                item |= {"succeeded": 1, "lastSuccess": ago(float(number))}
            case "fail":
                item |= {"failed": 1, "lastFailure": ago(float(number)), "failureReason": "refused"}
            case "open":
                item |= {"open": 1, "openSince": ago(float(number))}
            case "aborted":
                item["aborted"] = int(number)
            case _:
                raise AssertionError(f"{word!r} in {text!r}")
    return item


def view(name: str, given: Row) -> Row | None:
    """A pod's entry in its node's object; None for a pod that the node does not list."""
    own = given.get("view", {})
    if own == "none":
        return None
    return {
        "uid": own.get("uid", given.get("uid", f"uid-{name}")),
        "baselineAt": ago_or_none(own, "baseline", given.get("started", 600) - 10),
        "complete": own.get("complete", not own.get("reasons")),
        "reasons": own.get("reasons", []),
        "listeners": [listener(item) for item in given.get("listens", ["0.0.0.0:8080"])],
        "peers": [peer(item) for item in given.get("peers", [])],
    }


def node(name: str, given: Row, views: list[Row]) -> list[Row]:
    """A node's object and Lease."""
    if given.get("object") is False:
        return []
    reason = given.get("reason", "")
    item: Row = {
        "apiVersion": API,
        "kind": "NodeRuntimeObservation",
        "metadata": {
            "name": name,
            "namespace": given.get("namespace", "pacto-node-agent"),
            "labels": given.get("labels", AGENT_LABELS),
        },
        "nodeName": given.get("nodeName", name),
        "lastPublished": ago(given.get("published", 3600)),
        "collection": {
            "state": given.get("state", "Running"),
            "reason": reason,
            "connectionsSince": ago_or_none(given, "connectionsSince", 3600),
        },
        "pods": views,
    }
    lease: Row = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "pacto-node-agent"},
        "spec": {
            "renewTime": ago_or_none(given, "heartbeat", 5),
            "leaseDurationSeconds": given.get("duration", 90),
        },
    }
    return [item] if given.get("lease") is False else [item, lease]


def provider(name: str, number: int, given: Row) -> list[Row]:
    """Another Pacto target `data/<name>` with a Service and one pod, or as many endpoints as told."""
    namespace = given.get("namespace", "data")
    known = {"clusterIPs": [f"10.96.0.{number}"], "port": 5432, "target": 5432, **given}
    status: Row = {
        "contract": {
            "serviceName": given.get("contractName", name),
            "version": given.get("version", "1.2.0"),
            "resolvedRef": given.get("ref", f"registry.example/{name}:1.2.0"),
        }
    }
    target: Row | None = given.get("target_", {"serviceName": given.get("service", name)})
    item: Row = {
        "apiVersion": API,
        "kind": "Pacto",
        "metadata": {"name": given.get("pacto", name), "namespace": namespace},
        "spec": {"contractRef": {"oci": f"oci://registry.example/{name}"}, "target": target},
        "status": status if given.get("contract", True) else {"contractStatus": "Unknown"},
    }
    found = [item]
    if given.get("exists", True):
        found.append(service(given.get("service", name), namespace, known))
    endpoints = given.get("endpoints")
    if endpoints is None:
        ip = f"10.2.0.{number}"
        started = given.get("started", 600)
        found.append(
            pod(f"{name}-0", namespace, name, number, {"ips": [ip], "started": started, "node": "far"})
        )
        endpoints = [{"addresses": [ip], "pod": f"{name}-0", "ready": given.get("ready", True)}]
    if endpoints:
        items = [endpoint({"namespace": namespace, **entry}) for entry in endpoints]
        found.append(slice_of(given.get("service", name), namespace, known, items))
    return found


def workload(row: Row) -> list[Row]:
    """The target's workload with what stands between it and its pods."""
    given = row.get("workload", {})
    if given is None:
        return []
    kind = given.get("kind", "Deployment")
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    container = {"name": "main", "image": "shop:1", "ports": [{"name": "web", "containerPort": 8080}]}
    template = {"spec": {"containers": [container], **given.get("template", {}).get("spec", {})}}
    spec: Row = {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}}, "template": template}
    spec.update(given.get("spec", {}))
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    found = [
        {
            "apiVersion": group,
            "kind": kind,
            "metadata": {"name": given.get("name", "shop"), "namespace": NAMESPACE, "uid": "shop-uid"},
            "spec": spec,
        }
    ]
    if kind == "Deployment":
        owner = {"kind": "Deployment", "name": "shop", "uid": "shop-uid", "controller": True}
        metadata = {"name": "shop-rs", "namespace": NAMESPACE, "uid": "shop-rs", "ownerReferences": [owner]}
        found.append({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {}})
    return found


def objects(row: Row) -> list[Row]:
    """All objects of a row."""
    pods: dict[str, Row] = {name: given or {} for name, given in (row.get("pods", {"a": {}}) or {}).items()}
    nodes: dict[str, Row] = {name: given or {} for name, given in row.get("nodes", {}).items()}
    for given in pods.values():
        nodes.setdefault(given.get("node", "n1"), {})
    found = [pacto(row), *workload(row)]
    endpoints: list[Row] = []
    for number, (name, given) in enumerate(pods.items(), start=1):
        raw = pod(name, NAMESPACE, "shop", number, given)
        found.append(raw)
        if given.get("endpoint", True):
            entry: Row = {"addresses": [ip["ip"] for ip in raw["status"]["podIPs"]], "pod": name}
            endpoints.append(endpoint({**entry, "uid": raw["metadata"]["uid"], **given.get("as", {})}))
    endpoints += [endpoint(item) for item in row.get("endpoints", [])]
    if row.get("service", {}) is not None:
        given_service = {"clusterIPs": ["10.96.9.9"], **row.get("service", {})}
        found.append(service("shop", NAMESPACE, given_service))
        if endpoints:
            found.append(slice_of("shop", NAMESPACE, given_service, endpoints))
    for number, (name, given) in enumerate(row.get("providers", {}).items(), start=1):
        found += provider(name, number, given or {})
    for name, given in nodes.items():
        on_it = [(pod_name, item) for pod_name, item in pods.items() if item.get("node", "n1") == name]
        views = [seen for pod_name, item in on_it if (seen := view(pod_name, item)) is not None]
        found += node(name, given, views)
    found += row.get("objects", [])
    return found


def options(row: Row) -> Options:
    """The options of a row; heartbeats by the checker's clock only where a node gives some."""
    given = row.get("options", {})
    beats: dict[str, Heartbeat] | None = None
    for name, item in row.get("nodes", {}).items():
        if item and ("renewed" in item or "offset" in item):
            beats = beats if beats is not None else {}
            seen = AT - item.get("heartbeat", 5)
            beats[name] = Heartbeat(seen, item.get("renewed", True), item.get("offset", 0.0))
    kernel = KernelOptions(
        enabled=given.get("kernel", True),
        staleness=given.get("staleness"),
        recency=given.get("recency"),
        mesh_proxies=tuple(given.get("meshProxies", ())),
        heartbeats=beats,
        watch_alive=given.get("watchAlive", True),
    )
    return Options(
        window=given.get("window", 120.0),
        match_interfaces_by_name=given.get("byName", False),
        observe_metrics=given.get("metrics", False),
        kernel=kernel,
    )


def cluster(row: Row, raws: list[Row] | None = None) -> Cluster:
    """The cluster of a row, through the decoders that files go through."""
    from dataclasses import replace

    from kubectl_pacto.model.fields import Fields
    from kubectl_pacto.model.probe import Probes, decode_probe

    found = Objects()
    for raw in objects(row) if raws is None else raws:
        found.add(raw)
    decoded = [decode_probe(Fields(item)) for item in row.get("probes") or ()]
    probes = Probes(
        "probes" in row,
        {key: protocol for key, protocol, _, _ in decoded if protocol is not None},
        {(key, path): answer for key, _, path, answer in decoded if answer is not None},
    )
    failures = {}
    for key, why in row.get("unreadable", {}).items():
        kind, namespace, name = ([*key.split("/"), "", ""])[:3]
        failures[kind, namespace, name] = why
    return replace(found.cluster(probes), failures=failures)


def run(row: Row, raws: list[Row] | None = None) -> Checked:
    """The outcome of the check that a row describes."""
    built = cluster(row, raws)
    mine = next(item for item in built.pactos if (item.namespace, item.name) == (NAMESPACE, "shop"))
    loaded = load_offline(mine)
    if "files" in row:
        files = {name: text.encode() for name, text in row["files"].items()}
        loaded = Loaded(validate(mine.inline, overrides=mine.overrides, files=files), files=files)
    return check(mine, built, loaded, at=AT, options=options(row))
