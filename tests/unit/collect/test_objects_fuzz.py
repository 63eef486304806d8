# SPDX-License-Identifier: MIT
"""Whatever stands where in an object: it is read, or refused with file, object and field."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.cli.evaluate_cmd import evaluate_all
from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.errors import InputError
from kubectl_pacto.model.snapshot import KernelOptions, Options
from tests.support.builders import AT, objects

INGRESS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "i", "namespace": "shop"},
    "spec": {
        "rules": [{"http": {"paths": [{"backend": {"service": {"name": "shop", "port": {"number": 80}}}}]}}]
    },
    "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7", "hostname": "x"}]}},
}
MONITOR = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "m", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "shop"}}, "endpoints": [{"port": 9090, "path": "/m"}]},
}
ROUTE = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "r", "namespace": "shop"},
    "spec": {"rules": [{"backendRefs": [{"name": "shop", "port": 80}]}]},
}
ROW: dict[str, Any] = {
    "contract": {
        "interfaces": ["api"],
        "dependencies": ["db"],
        "capabilities": [{"type": "metrics", "binding": {"type": "http", "interface": "api", "path": "/m"}}],
        "configurations": [{"name": "app", "required": True, "schema": "a.json"}],
        "workload": "service",
        "state": {
            "type": "stateful",
            "persistence": {"scope": "local", "durability": "persistent"},
            "dataCriticality": "low",
        },
    },
    "target": {
        "configBindings": [
            {"configuration": "app", "kind": "ConfigMap", "name": "c", "key": "k", "format": "yaml"}
        ]
    },
    "service": {"type": "LoadBalancer", "balancer": [{"ip": "203.0.113.7"}], "externalIPs": ["10.0.0.1"]},
    "pods": {"a": {"peers": ["10.96.0.1:5432 ok 5 fail 9 open 4"], "probe": {"httpGet": {"port": "web"}}}},
    "workload": {
        "template": {"spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}}
    },
    "providers": {"db": {}, "audit": {}},
    "windows": {"interface/api": 200, "dependency/db": 300},
    "objects": [
        INGRESS,
        MONITOR,
        ROUTE,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "shop"},
            "data": {"k": "a: 1"},
        },
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}}},
    ],
}
RAWS = objects(ROW)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        99999,
        1.5,
        "",
        "x",
        "10.0.0.1",
        "2026-10-18T09:12:44Z",
        [],
        {},
        [[]],
        [None],
        [{}],
        {"a": 1},
    ]
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


def _add_all(found: Objects, raws: list[Any]) -> str:
    """Add objects; what the first refusal says, empty if there is none."""
    try:
        for raw in raws:
            found.add(raw, file="bundle.yaml")
    except InputError as error:
        return str(error)
    return ""


@given(st.integers(0, 2**32), st.lists(ODD, min_size=1, max_size=3))
def test_an_odd_value_anywhere_is_read_or_named(seed: int, odd: list[Any]) -> None:
    raws = deepcopy(RAWS)
    rng = random.Random(seed)
    for value in odd:
        container, key = rng.choice(list(places(raws)))
        container[key] = value
    found = Objects()
    refusal = _add_all(found, raws)
    if refusal:
        assert refusal.startswith("bundle.yaml: ")
        assert len(refusal.split(": ")) >= 3
        return
    options = Options(observe_metrics=True, kernel=KernelOptions(enabled=True))
    for result in evaluate_all(found.cluster(), at=AT, options=options):
        assert result.checked.status["contractStatus"]
