# SPDX-License-Identifier: MIT
"""What of the operator is reached over the network: its metrics, and who may connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_pacto.controller.manifests.agent_objects import NAME as AGENT
from kubectl_pacto.model.node import AGENT_LABELS

Object = dict[str, Any]
Labels = Mapping[str, str]


def metrics(values: Object, name: str, namespace: str, labels: Labels) -> list[Object]:
    """The Service of the metrics and, where wanted, what makes Prometheus scrape it."""
    selector = {"app.kubernetes.io/name": labels["app.kubernetes.io/name"]}
    metadata: Object = {"name": f"{name}-metrics", "namespace": namespace, "labels": dict(labels)}
    port = {"name": "metrics", "port": values["metrics"]["service"]["port"], "targetPort": "metrics"}
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": selector, "ports": [port]},
    }
    monitor = values["metrics"]["serviceMonitor"]
    if not monitor["enabled"]:
        return [service]
    times = {key: monitor[key] for key in ("interval", "scrapeTimeout") if monitor[key]}
    endpoint: Object = {"port": "metrics", **times}
    if values["metrics"]["secure"]:
        endpoint |= _tls(values, f"{name}-metrics.{namespace}.svc")
    scrape: Object = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {**metadata, "labels": {**monitor["labels"], **labels}},
        "spec": {"selector": {"matchLabels": selector}, "endpoints": [endpoint]},
    }
    return [service, scrape]


def _tls(values: Object, server: str) -> Object:
    """How Prometheus reads over TLS: as itself, and sure of whom it asks."""
    ca = {"secret": {"name": values["metrics"]["certificate"]["secretName"], "key": "ca.crt"}}
    return {
        "scheme": "https",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": values["metrics"]["serviceMonitor"]["tlsConfig"] or {"ca": ca, "serverName": server},
    }


def policies(values: Object, name: str, namespace: str, labels: Labels) -> list[Object]:
    """Who may connect to the operator; to an agent, which opens no port, nobody."""
    selector = {"app.kubernetes.io/name": labels["app.kubernetes.io/name"]}
    ingress: list[Object] = [{"ports": [{"port": "probes"}]}]
    if values["metrics"]["enabled"]:
        peers = values["networkPolicy"]["metricsFrom"]
        ingress.append({"ports": [{"port": "metrics"}], **({"from": peers} if peers else {})})
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    found = [_policy(metadata, selector, ingress)]
    if values["nodeAgent"]["enabled"]:
        where = values["nodeAgent"]["namespace"]
        metadata = {"name": AGENT, "namespace": where, "labels": dict(AGENT_LABELS)}
        found.append(_policy(metadata, {"app.kubernetes.io/name": AGENT}, []))
    return found


def _policy(metadata: Object, selector: Object, ingress: list[Object]) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": ingress},
    }
