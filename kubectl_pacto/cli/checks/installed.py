# SPDX-License-Identifier: MIT
"""After an installation: does all of it run, in one version, and does every node report?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_pacto import __version__
from kubectl_pacto.cli.checks import Check, Group, Result, Scope
from kubectl_pacto.cli.checks.cluster import check_api
from kubectl_pacto.collect.fleet import Component, Reading, read_agents, read_nodes, read_operator
from kubectl_pacto.collect.fleet_nodes import NodeRow, NodeState, node_rows
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiForbidden, ApiNotFound

CRDS: Final = ("pactos", "pactorevisions", "noderuntimeobservations")
CRD_API: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICY_API: Final = "/apis/admissionregistration.k8s.io/v1"
POLICY: Final = "pacto-node-agent-own-node"
LEVEL: Final = "pod-security.kubernetes.io/enforce"


def check_crds(scope: Scope) -> Iterator[Check]:
    """The CRDs are there and established."""
    for plural in CRDS:
        name = f"{plural}.pacto.trianalab.io"
        try:
            raw = scope.session.client.get(f"{CRD_API}/{name}")
        except ApiNotFound:
            yield Check(
                f"crd-{plural}", Result.FAILED, f"CRD {name} exists", "", "run: kubectl pacto install"
            )
            continue
        except ApiForbidden as error:
            what = f"CRD {name} is established"
            yield Check(f"crd-{plural}", Result.SKIPPED, what, str(error.facts["problem"]))
            continue
        conditions = {one["type"]: one for one in (raw.get("status") or {}).get("conditions") or ()}
        established = conditions.get("Established") or {}
        is_up = established.get("status") == "True"
        detail = "" if is_up else str(established.get("message") or "not established")
        result = Result.OK if is_up else Result.FAILED
        yield Check(f"crd-{plural}", result, f"CRD {name} is established", detail)


def check_operator(scope: Scope) -> Iterator[Check]:
    """The operator runs, in this plugin's version."""
    reading = Reading()
    found = read_operator(scope.session.client, reading)
    if found is None:
        detail = "; ".join(reading.refused.values())
        result = Result.SKIPPED if reading.refused else Result.FAILED
        yield Check("operator-ready", result, "the operator runs", detail, "run: kubectl pacto install")
        return
    where = f"-n {found.namespace} {found.name}"
    yield Check(
        "operator-ready",
        Result.OK if found.is_ready else Result.FAILED,
        "the operator is ready",
        "" if found.is_ready else f"{found.ready} of {found.desired} ready, {found.updated} updated",
        "" if found.is_ready else f"look: kubectl describe deployment {where}",
    )
    yield _version("operator-version", "the operator has this plugin's version", found)


def _version(check_id: str, what: str, found: Component) -> Check:
    tag = found.image.rpartition(":")[2] if ":" in found.image.rpartition("/")[2] else ""
    if not tag or tag == __version__:
        return Check(
            check_id, Result.OK if tag else Result.SKIPPED, what, "" if tag else f"image {found.image}"
        )
    return Check(check_id, Result.WARNING, what, f"{tag}, not {__version__}", "run: kubectl pacto upgrade")


def check_agents(scope: Scope) -> Iterator[Check]:
    """The node agents run where they are wanted, and are kept to their own nodes."""
    client, reading = scope.session.client, Reading()
    found = read_agents(client, scope.agent_namespace, reading)
    if found is None:
        detail = "; ".join(reading.refused.values()) or "no DaemonSet: kernel evidence is off"
        hint = "" if reading.refused else "turn it on: kubectl pacto upgrade --node-agent"
        yield Check("agents-ready", Result.SKIPPED, "node agents run", detail, hint)
        return
    yield Check(
        "agents-ready",
        Result.OK if found.is_ready else Result.FAILED,
        f"{found.desired} node agents are ready",
        "" if found.is_ready else f"{found.ready} ready, {found.updated} updated",
        "" if found.is_ready else f"look: kubectl get pods -n {scope.agent_namespace} -o wide",
    )
    yield _version("agents-version", "the node agents have this plugin's version", found)
    yield _namespace(client, scope.agent_namespace)
    for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
        yield _exists(client, f"{POLICY_API}/{kind}/{POLICY}", kind)


def _namespace(client: Client, name: str) -> Check:
    raw = client.get(f"/api/v1/namespaces/{name}")
    level = (raw["metadata"].get("labels") or {}).get(LEVEL, "")
    what = f"namespace {name} admits privileged pods"
    if level == "privileged":
        return Check("agents-namespace", Result.OK, what)
    hint = f"run: kubectl label namespace {name} {LEVEL}=privileged --overwrite"
    return Check("agents-namespace", Result.WARNING, what, f"its level is {level or 'not set'}", hint)


def _exists(client: Client, path: str, kind: str) -> Check:
    check_id = "agents-policy" if kind.endswith("policies") else "agents-policy-binding"
    what = f"{kind}/{POLICY} exists"
    try:
        client.get(path)
    except ApiNotFound:
        detail = "an agent may write the objects of other nodes"
        return Check(check_id, Result.FAILED, what, detail, "run: kubectl pacto upgrade")
    except ApiForbidden as error:
        return Check(check_id, Result.SKIPPED, what, str(error.facts["problem"]))
    return Check(check_id, Result.OK, what)


def check_reports(scope: Scope) -> Iterator[Check]:
    """Every node reports, freshly and without loss; one check per node, those that are well in one."""
    client, reading = scope.session.client, Reading()
    objects = read_nodes(client, scope.agent_namespace, reading)
    rows = node_rows(objects, scope.session.now())
    if not objects.observations:
        detail = "; ".join(reading.refused.values()) or "no node agent reports"
        yield Check("nodes-report", Result.SKIPPED, "every node reports", detail)
        return
    well = [row for row in rows if row.state in (NodeState.RUNNING, NodeState.UNSUPPORTED)]
    yield Check("nodes-report", Result.OK, f"{len(well)} of {len(rows)} nodes report without loss")
    for row in rows:
        if row not in well:
            result = Result.WARNING if row.state is NodeState.DEGRADED else Result.FAILED
            yield Check("node-report", result, f"node {row.name} reports", _why(row), _hint(scope, row))
        if row.skew:
            detail = f"{row.skew:.0f}s ahead of the API server's"
            yield Check("node-clock", Result.WARNING, f"the clock of node {row.name} is right", detail)


def _why(row: NodeRow) -> str:
    parts = [row.state.value, row.reason, row.message]
    return ": ".join(part for part in parts if part)


def _hint(scope: Scope, row: NodeRow) -> str:
    if row.state is NodeState.FAILED:
        return f"look: kubectl pacto coverage -o wide; the kernel of {row.name} is {row.kernel or 'unknown'}"
    if row.state is NodeState.DEGRADED:
        return "look: kubectl pacto coverage -o wide"
    where = f"-n {scope.agent_namespace} --field-selector spec.nodeName={row.name}"
    return f"look: kubectl get pods {where}"


AFTER: Final[tuple[Group, ...]] = (
    ("Kubernetes API", "api-reachable", check_api),
    ("Resources", "crds", check_crds),
    ("Operator", "operator-ready", check_operator),
    ("Node agents", "agents-ready", check_agents),
    ("Nodes", "nodes-report", check_reports),
)
