# SPDX-License-Identifier: MIT
"""The kernel's view of each pod and how much it is worth, as the operator would take it.

Judged by the very function that the operator uses. Pure: objects and a clock in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_pacto.collect.fleet import NodeObjects
from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.decode_net import decode_lease
from kubectl_pacto.model.decode_pods import decode_pod
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.node_codec import decode_node
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import KernelOptions, Options, Snapshot
from kubectl_pacto.observe.coverage import Coverage, Level, cover

Raw = Mapping[str, Any]


def pod_coverages(
    objects: NodeObjects, pods: Iterable[Raw], at: float, options: KernelOptions
) -> list[Coverage]:
    """The coverage of each running pod, the worst first."""
    nodes = []
    for raw in objects.observations:
        try:
            nodes.append(decode_node(raw))
        except MalformedObject:
            continue  # its node reads as without an object, as the operator has it
    cluster = Cluster(nodes=tuple(nodes), leases=tuple(decode_lease(Fields(raw)) for raw in objects.leases))
    # coverage does not depend on a Pacto: the snapshot is one of none
    nobody = Snapshot(at, Pacto("", ""), Contract("", ""), cluster, Options(kernel=options))
    decoded = [decode_pod(Fields(raw)) for raw in pods]
    found = [cover(nobody, pod) for pod in decoded if pod.running]
    return sorted(found, key=lambda one: (-one.level, one.pod.namespace, one.pod.name))


def levels_by_node(coverages: Iterable[Coverage]) -> dict[str, dict[Level, int]]:
    """How many pods of each node are at each level."""
    counts: defaultdict[str, dict[Level, int]] = defaultdict(lambda: dict.fromkeys(Level, 0))
    for one in coverages:
        counts[one.pod.node][one.level] += 1
    return dict(counts)
