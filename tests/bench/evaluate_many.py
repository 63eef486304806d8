# SPDX-License-Identifier: MIT
"""What evaluating ten thousand Pactos with fifty thousand pods costs, beside decoding the same JSON.

`python -m tests.bench.evaluate_many [PACTOS]`; the goal is under a minute on one core, and a cost per
Pacto that does not grow with their number.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from kubectl_pacto.cli.evaluate_cmd import evaluate_all
from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.model.snapshot import KernelOptions, Options
from tests.support import builders

PODS = 5
NODES = 500


def address(first: int, number: int) -> str:
    """The address of a number below a first octet."""
    return f"{first}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def scene(count: int, namespaces: int = 200) -> list[dict[str, Any]]:
    """Pactos in a ring, each with its workload, Service, slice and pods that call the next one."""
    views: dict[str, list[dict[str, Any]]] = {}
    found: list[dict[str, Any]] = []
    for number in range(count):
        found += list(_one(number, count, f"ns{number % namespaces}", views))
    for name, seen in views.items():
        found += builders.node(name, {}, seen)
    return found


def _one(number: int, count: int, namespace: str, views: dict[str, list[dict[str, Any]]]) -> Iterator[Any]:
    name, onward = f"s{number}", (number + 1) % count
    contract = {"interfaces": ["api"], "dependencies": [f"s{onward}"], "workload": "service"}
    raw = builders.pacto({"contract": contract, "target": {"serviceName": name}})
    raw["metadata"] = {"name": name, "namespace": namespace}
    inline = raw["spec"]["contractRef"]["inline"]
    raw["spec"]["contractRef"]["inline"] = inline.replace("name: shop", f"name: {name}")
    published = {"serviceName": name, "version": "1.0.0", "resolvedRef": f"registry.example/{name}:1.0.0"}
    raw["status"]["contract"] = published
    yield raw
    for item in builders.workload({}):
        text = json.dumps(item).replace('"shop', f'"{name}')
        own = json.loads(text)
        own["metadata"]["namespace"] = namespace
        yield own
    yield builders.service(name, namespace, {"clusterIPs": [address(10, number)]})
    endpoints = []
    for index in range(PODS):
        serial = number * PODS + index
        pod, node = f"{name}-{index}", f"n{serial % NODES}"
        given = {"ips": [address(11, serial)], "node": node, "peers": [f"{address(10, onward)}:80 ok 5"]}
        yield builders.pod(pod, namespace, name, 1, given)
        views.setdefault(node, []).append(builders.view(pod, given) or {})
        entry = {"addresses": given["ips"], "pod": pod, "namespace": namespace, "uid": f"uid-{pod}"}
        endpoints.append(builders.endpoint(entry))
    yield builders.slice_of(name, namespace, {}, endpoints)


def measure(count: int, namespaces: int = 200) -> tuple[float, float, int]:
    """Seconds to decode the JSON, seconds to evaluate it, and how many were Compliant."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": scene(count, namespaces)})
    start = time.process_time()
    raw = json.loads(text)
    decoded = time.process_time()
    objects = Objects()
    objects.add(raw)
    options = Options(kernel=KernelOptions(enabled=True))
    results = evaluate_all(objects.cluster(), at=builders.AT, options=options)
    done = time.process_time()
    compliant = sum(result.checked.contract_status.value == "Compliant" for result in results)
    return decoded - start, done - decoded, compliant


def main() -> int:
    """Print the figures of this machine, and their ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    few = max(100, count // 20)
    _, few_seconds, _ = measure(few)
    json_seconds, seconds, compliant = measure(count)
    print(f"{count} Pactos, {count * PODS} pods, {compliant} Compliant: {seconds:.1f} s of one core")
    print(f"beside decoding the JSON alone ({json_seconds:.1f} s): {seconds / json_seconds:.1f} times")
    print(f"each Pacto costs {(seconds / count) / (few_seconds / few):.2f} times what it costs among {few}")
    return 0 if compliant == count else 1


if __name__ == "__main__":
    sys.exit(main())
