# SPDX-License-Identifier: MIT
"""`kubectl pacto coverage`: how much of the cluster the kernel's view covers, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.listing import agent_option, headers_option, output_option, staleness_help
from kubectl_pacto.cli.options import Duration
from kubectl_pacto.cli.terminal import tell, write
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.kubeconfig import Flags

if TYPE_CHECKING:
    from kubectl_pacto.cli.render.columns import Column
    from kubectl_pacto.collect.fleet import NodeObjects, Reading
    from kubectl_pacto.kube.connect import Session

POD_API: Final = "/api/v1/pods"
EXAMPLES: Final = """
\b
Examples:
  kubectl pacto coverage                       # one row per node, the worst first
  kubectl pacto coverage --node worker-1       # one row per pod of a node
  kubectl pacto coverage --pod web-0 -o wide   # one pod, where it listens and whom it talks to
"""


@click.command(short_help="How much of each node and pod the kernel's view covers.", epilog=EXAMPLES)
@with_connection("The namespace of --pod, or whose pods of --node. [default: the context's; all with --node]")
@click.option(
    "-A",
    "--all-namespaces",
    "everywhere",
    is_flag=True,
    help="Not needed: without --pod all namespaces are read anyway.",
)
@click.option("--node", metavar="NODE", default="", help="One row per pod of this node.")
@click.option(
    "--pod", metavar="POD", default="", help="This pod; NAMESPACE/POD where it is not in that of -n."
)
@output_option
@headers_option
@agent_option
@click.option("--staleness", type=Duration(), help=staleness_help)
def coverage(  # noqa: PLR0913 -- one for each option
    *,
    flags: Flags,
    everywhere: bool,
    node: str,
    pod: str,
    form: str,
    no_headers: bool,
    agent_namespace: str,
    staleness: float | None,
) -> None:
    """Show how much of the cluster the kernel's view covers: nodes, or with --node or --pod its pods.

    A pod is Complete, Partial, Failed or Stale, as the operator would take it. Nodes without an agent
    are listed, too: their pods are Stale.
    """
    from kubectl_pacto.cli.render.columns import document, emit, table
    from kubectl_pacto.cli.render.coverage import NODE_COLUMNS, POD_COLUMNS
    from kubectl_pacto.collect.fleet import Reading, read_nodes

    _require_one_question(everywhere, node, pod)
    session, reading = open_session(flags), Reading()
    objects = read_nodes(session.client, agent_namespace, reading)
    columns: Sequence[Column]
    if node or pod:
        kind, columns = "PodCoverageList", POD_COLUMNS
        wanted = [_read_pod(session, pod)] if pod else _pods_of(session, objects, node, flags.namespace)
        items = _pods(session, objects, wanted, agent_namespace, staleness)
        names = [f"pod/{item['pod']}" for item in items]
    else:
        kind, columns = "NodeCoverageList", NODE_COLUMNS
        items = _nodes(session, objects, agent_namespace, staleness, reading)
        names = [f"node/{item['node']}" for item in items]
    data = document(kind, session.now(), items=items, notRead=reading.refused)
    shown = emit(
        data,
        form,
        text=lambda: table(items, columns, wide=form == "wide", headers=not no_headers),
        names=names,
    )
    write(shown)
    if form in ("table", "wide"):
        _tell(objects, reading, items, agent_namespace)


def _require_one_question(everywhere: bool, node: str, pod: str) -> None:
    """Before a cluster is asked. Raises UsageError."""
    if pod and node:
        raise UsageError(f"--pod and --node exclude each other: --pod {pod} alone says its node, too")
    if pod and everywhere:
        raise UsageError("--pod names one pod: with --pod NAMESPACE/POD instead of -A")


def _nodes(
    session: Session, objects: NodeObjects, namespace: str, staleness: float | None, reading: Reading
) -> list[dict[str, Any]]:
    from kubectl_pacto.cli.render.coverage import node_item
    from kubectl_pacto.collect.fleet import NONE, list_raw
    from kubectl_pacto.collect.fleet_nodes import node_rows
    from kubectl_pacto.collect.fleet_pods import levels_by_node, pod_coverages
    from kubectl_pacto.kube.lists import with_query
    from kubectl_pacto.model.snapshot import KernelOptions

    path = with_query(POD_API, fieldSelector="status.phase=Running")
    pods = reading.optional("pods", lambda: list_raw(session.client, path), NONE)
    at = session.now()
    options = KernelOptions(enabled=True, namespace=namespace, staleness=staleness)
    levels = levels_by_node(pod_coverages(objects, pods, at, options))
    may_count = "pods" not in reading.refused
    return [
        node_item(row, levels.get(row.name, {}) if may_count else None)
        for row in node_rows(objects, at, staleness)
    ]


def _pods(
    session: Session,
    objects: NodeObjects,
    pods: list[dict[str, Any]],
    namespace: str,
    staleness: float | None,
) -> list[dict[str, Any]]:
    from kubectl_pacto.cli.render.coverage import pod_item
    from kubectl_pacto.collect.fleet_pods import pod_coverages
    from kubectl_pacto.model.snapshot import KernelOptions

    at = session.now()
    options = KernelOptions(enabled=True, namespace=namespace, staleness=staleness)
    return [pod_item(one, at) for one in pod_coverages(objects, pods, at, options)]


def _pods_of(session: Session, objects: NodeObjects, node: str, namespace: str) -> list[dict[str, Any]]:
    """The pods of a node, of one namespace where one is named. Raises NoSuchNode."""
    from kubectl_pacto.collect.fleet import list_raw
    from kubectl_pacto.collect.fleet_errors import NoSuchNode
    from kubectl_pacto.kube.lists import with_query
    from kubectl_pacto.kube.paths import namespaced

    if objects.nodes and node not in {raw["metadata"]["name"] for raw in objects.nodes}:
        raise NoSuchNode(name=node)
    path = namespaced("/api/v1", namespace, "pods") if namespace else POD_API
    return list_raw(session.client, with_query(path, fieldSelector=f"spec.nodeName={node}"))


def _read_pod(session: Session, pod: str) -> dict[str, Any]:
    namespace, _, name = pod.rpartition("/")
    path = f"/api/v1/namespaces/{quote(namespace or session.namespace, safe='')}/pods/{quote(name, safe='')}"
    return session.client.get(path)


def _tell(objects: NodeObjects, reading: Reading, items: list[dict[str, Any]], agent_namespace: str) -> None:
    """What the table does not say, on stderr."""
    for what, why in reading.refused.items():
        tell(f"{what} cannot be read: {why}")
    for item in items:
        if item.get("clockAheadSeconds"):
            text = (
                f"the clock of node {item['node']} is {item['clockAheadSeconds']}s ahead of the API server's"
            )
            tell(f"warning: {text}")
    if not objects.observations and not reading.refused:
        what = f"no node agent reports in namespace {agent_namespace}"
        tell(f"{what}: `kubectl pacto install --node-agent` turns it on")
    elif not items:
        tell("no running pods")
