# SPDX-License-Identifier: MIT
"""What a report says, as data: from a cluster with the verdicts of its operator, or from files with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.cli.evaluate_cmd import evaluate_all, has_agents
from kubectl_pacto.cli.render.columns import document
from kubectl_pacto.cli.render.coverage import node_item, pod_item
from kubectl_pacto.cli.render.status import ORDER, pacto_item, rank
from kubectl_pacto.cli.report.graph import find_calls, graph_document, identify
from kubectl_pacto.cli.report.selector import parse_selector
from kubectl_pacto.collect.fleet import NONE, NodeObjects, Reading, list_raw
from kubectl_pacto.collect.fleet_nodes import node_rows
from kubectl_pacto.collect.fleet_pods import levels_by_node, pod_coverages
from kubectl_pacto.collect.objects import Objects, read_objects
from kubectl_pacto.conformance.source import Loaded, publish_new
from kubectl_pacto.errors import InputError
from kubectl_pacto.kube.connect import Session
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.node import AGENT_LABELS
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import KernelOptions, Options

Raw = Mapping[str, Any]
Loader = Callable[[Pacto], Loaded]
KEPT: Final = ("Pacto", "Pod", "Node", "NodeRuntimeObservation", "Lease")
MOST_PODS: Final = 200
LABEL: Final = "app.kubernetes.io/name"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the report is about: a namespace (empty: all) and a label selector (empty: all)."""

    namespace: str = ""
    selector: str = ""

    def holds(self, raw: Raw) -> bool:
        """Whether a Pacto is part of it. Raises UsageError for a selector that is none."""
        if self.namespace and raw["metadata"]["namespace"] != self.namespace:
            return False
        chosen = parse_selector(self.selector)
        return not chosen or chosen.matches(raw["metadata"].get("labels") or {})


@dataclass(slots=True)
class Gathered:
    """Objects, how they are judged, and where they came from."""

    objects: Objects
    source: dict[str, Any]
    at: float
    agent_namespace: str
    warnings: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> NodeObjects:
        """What is known of nodes and their agents."""
        kept = self.objects.kept
        observations = [
            raw
            for (namespace, _), raw in kept["NodeRuntimeObservation"].items()
            if namespace == self.agent_namespace
            and (raw["metadata"].get("labels") or {}).get(LABEL) == AGENT_LABELS[LABEL]
        ]
        leases = [raw for (namespace, _), raw in kept["Lease"].items() if namespace == self.agent_namespace]
        return NodeObjects(list(kept["Node"].values()), observations, leases)


def from_files(files: Sequence[str], at: float, agent_namespace: str) -> Gathered:
    """The objects of files. Raises InputError."""
    objects = read_objects(files, KEPT)
    unread = [
        f"not part of the input: {kind}{f' {namespace}/{name}'.rstrip('/') if namespace else ''} ({why})"
        for (kind, namespace, name), why in objects.failures.items()
    ]
    return Gathered(objects, {"kind": "Files", "files": list(files)}, at, agent_namespace, unread)


def from_cluster(session: Session, agent_namespace: str) -> Gathered:
    """The objects that verdicts rest on, and nodes. Raises ApiError; one that is malformed is left out."""
    from kubectl_pacto.collect.bundle import read_bundle

    reading, objects, warnings = Reading(), Objects(KEPT), []
    nodes = reading.optional("nodes", lambda: list_raw(session.client, "/api/v1/nodes"), NONE)
    named = ({"apiVersion": "v1", "kind": "Node", **raw} for raw in nodes)
    for raw in (*read_bundle(session.client, agent_namespace, reading), *named):
        try:
            objects.add(raw)
        except InputError as error:
            warnings.append(f"left out, malformed: {error.facts['where']}: {error.facts['problem']}")
    warnings += [f"cannot be read: {what}: {why}" for what, why in reading.refused.items()]
    source = {"kind": "Cluster", "server": session.server, "context": session.context}
    return Gathered(objects, source, session.now(), agent_namespace, warnings)


def report_document(gathered: Gathered, wanted: Wanted, loader: Loader) -> tuple[dict[str, Any], list[Raw]]:
    """The stable JSON, and the Pactos that it is about, each with the status that it reports."""
    cluster = publish_new(gathered.objects.cluster())
    kernel = KernelOptions(enabled=has_agents(cluster), namespace=gathered.agent_namespace)
    options = Options(kernel=kernel)
    raws: list[Raw] = [_placed(raw) for raw in gathered.objects.kept["Pacto"].values()]
    if gathered.source["kind"] == "Files":
        raws = _judged(raws, cluster, gathered.at, options, loader)
    chosen = [raw for raw in raws if wanted.holds(raw)]
    items = sorted((pacto_item(raw, gathered.at) for raw in chosen), key=rank)
    calls, unread = find_calls(cluster, loader, gathered.at, options)
    verdicts = {_id(raw): pacto_item(raw, gathered.at)["contractStatus"] for raw in raws}
    scope = [_id(raw) for raw in chosen]
    warnings = [*gathered.warnings, *_of_contracts(unread, set(scope))]
    counts = [item["contractStatus"] for item in items]
    made = document(
        "Report",
        gathered.at,
        source=gathered.source,
        namespace=wanted.namespace,
        selector=wanted.selector,
        verdicts={name: counts.count(name) for name in ORDER if name in counts},
        pactos=items,
        **_coverage(gathered, kernel),
        graph=graph_document(calls, verdicts, scope),
        warnings=warnings,
    )
    return made, chosen


def _judged(raws: Iterable[Raw], cluster: Cluster, at: float, options: Options, loader: Loader) -> list[Raw]:
    """The Pactos with the status that the operator would write."""
    results = evaluate_all(cluster, at=at, options=options, loader=loader)
    found = {(one.namespace, one.name): dict(one.checked.status) for one in results}
    by_id = {identify(pacto): (pacto.namespace, pacto.name) for pacto in cluster.pactos}
    return [{**raw, "status": found[by_id[_id(raw)]]} for raw in raws]


def _placed(raw: Raw) -> Raw:
    """An object of a file may leave its namespace out."""
    metadata = raw["metadata"]
    return {**raw, "metadata": {**metadata, "namespace": metadata.get("namespace") or "default"}}


def _id(raw: Raw) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def _of_contracts(unread: Sequence[str], scope: set[str]) -> list[str]:
    missing = [name for name in unread if name in scope]
    if not missing:
        return []
    shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return [
        f"contracts not read, so that the calls they declare are not shown: {shown} (--pull fetches them)"
    ]


def _coverage(gathered: Gathered, kernel: KernelOptions) -> dict[str, Any]:
    """Nodes, and the pods whose view is not complete; both empty where no agent reports."""
    nodes, pods = gathered.nodes, gathered.objects.kept["Pod"].values()
    if not kernel.enabled:
        return {"kernelEvidence": False, "nodes": [], "pods": [], "podsLeftOut": 0}
    covered = pod_coverages(nodes, pods, gathered.at, kernel)
    levels = levels_by_node(covered)
    rows = [node_item(row, levels.get(row.name, {})) for row in node_rows(nodes, gathered.at)]
    doubtful = [pod_item(one, gathered.at) for one in covered if one.level]
    return {
        "kernelEvidence": True,
        "nodes": rows,
        "pods": [
            {key: item[key] for key in ("namespace", "pod", "node", "level", "reasons")}
            for item in doubtful[:MOST_PODS]
        ],
        "podsLeftOut": max(0, len(doubtful) - MOST_PODS),
    }
