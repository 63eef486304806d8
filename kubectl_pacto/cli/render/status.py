# SPDX-License-Identifier: MIT
"""`status` as data and as one screen: operator, agents, verdicts worst first, then the findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_pacto.cli.render.columns import Column, age, document, indented, table
from kubectl_pacto.cli.render.severities import EXPLAINED, severity_rank
from kubectl_pacto.cli.render.windows import window_lines
from kubectl_pacto.cli.terminal import printable
from kubectl_pacto.cli.watching import steady
from kubectl_pacto.collect.fleet import Component
from kubectl_pacto.collect.fleet_nodes import NodeRow, NodeState, count_states
from kubectl_pacto.model.instant import parse_instant

Raw = Mapping[str, Any]
# the worst first; a Pacto without a status waits for the operator
ORDER: Final = ("NonCompliant", "Invalid", "Unknown", "Pending", "Warning", "Compliant", "Reference")


@dataclass(frozen=True, slots=True)
class Fleet:
    """What `status` shows. `namespace` empty: of all."""

    at: float
    namespace: str
    pactos: Sequence[Raw]
    operator: Component | None
    agents: Component | None
    nodes: Sequence[NodeRow]
    refused: Mapping[str, str] = field(default_factory=dict)


def verdict_of(pacto: Raw) -> str:
    """The contract status of a Pacto, Pending before its first check."""
    return str((pacto.get("status") or {}).get("contractStatus") or "Pending")


def status_document(fleet: Fleet) -> dict[str, Any]:
    """The stable JSON."""
    pactos = [pacto_item(raw, fleet.at) for raw in fleet.pactos]
    verdicts = [item["contractStatus"] for item in pactos]
    return document(
        "Status",
        fleet.at,
        namespace=fleet.namespace,
        operator=_component(fleet.operator),
        nodeAgent=_component(fleet.agents),
        nodes=count_states(fleet.nodes),
        verdicts={name: verdicts.count(name) for name in ORDER if name in verdicts},
        pactos=sorted(pactos, key=rank),
        warnings=list(_warnings(fleet)),
    )


def _component(component: Component | None) -> dict[str, Any] | None:
    if component is None:
        return None
    return {
        "namespace": component.namespace,
        "name": component.name,
        "desired": component.desired,
        "ready": component.ready,
        "updated": component.updated,
        "image": component.image,
    }


def rank(item: Raw) -> tuple[int, str, str]:
    """Sorts Pactos: the worst first, then by name."""
    word = item["contractStatus"]
    return (ORDER.index(word) if word in ORDER else 0, item["namespace"], item["name"])


def pacto_item(raw: Raw, at: float) -> dict[str, Any]:
    """A Pacto as JSON has it."""
    status, spec = raw.get("status") or {}, raw.get("spec") or {}
    summary, coverage = status.get("summary") or {}, status.get("evaluationCoverage") or {}
    checked = status.get("lastReconciledAt")
    return {
        "namespace": raw["metadata"]["namespace"],
        "name": raw["metadata"]["name"],
        "contractStatus": verdict_of(raw),
        "errors": int(summary.get("errorCount") or 0),
        "warnings": int(summary.get("warningCount") or 0),
        "unknowns": int(summary.get("unknownCount") or 0),
        "contractVersion": str(status.get("contractVersion") or ""),
        "target": _target(spec.get("target") or {}),
        "verified": {key: int(coverage.get(key) or 0) for key in ("evaluated", "required")},
        "kernelEvidence": status.get("kernelEvidence"),
        "lastReconciledAt": checked,
        "checkedSecondsAgo": int(max(0.0, at - parse_instant(checked))) if checked else None,
        "findings": sorted(status.get("findings") or [], key=severity_rank),
        "observationWindows": status.get("observationWindows") or [],
        "problems": list(_problems(raw, status)),
    }


def _target(target: Raw) -> str:
    workload = target.get("workloadRef") or {}
    if workload:
        return f"{workload.get('kind') or 'Deployment'}/{workload.get('name')}"
    return f"Service/{target['serviceName']}" if target.get("serviceName") else ""


def _problems(raw: Raw, status: Raw) -> Iterator[dict[str, str]]:
    """Why there is no verdict, where no finding says it."""
    for issue in (status.get("validation") or {}).get("errors") or ():
        code = str(issue.get("code") or "INVALID")
        yield {"severity": "error", "reason": code, "message": _at(issue)}
    if verdict_of(raw) == "Unknown" and not status.get("findings"):
        for one in status.get("conditions") or ():
            if one.get("status") == "Unknown":
                reason, message = str(one.get("reason")), str(one.get("message"))
                yield {"severity": "unknown", "reason": reason, "message": message}


def _at(issue: Raw) -> str:
    return ": ".join(str(part) for part in (issue.get("path"), issue.get("message")) if part)


def _warnings(fleet: Fleet) -> Iterator[str]:
    if fleet.operator is None and "the operator's Deployment" not in fleet.refused:
        yield "no operator runs: statuses are as it left them, or empty; `kubectl pacto check` says more"
    elif fleet.operator is not None and not fleet.operator.is_ready:
        ready = f"{fleet.operator.ready} of {fleet.operator.desired}"
        yield f"the operator is not ready ({ready}): statuses may be old"
    for row in fleet.nodes:
        if row.skew:
            yield f"the clock of node {row.name} is {age(row.skew)} ahead of the API server's"
    for what, why in fleet.refused.items():
        yield f"{what} cannot be read: {why}"


COLUMNS: Final = (
    Column("NAME", lambda row: row["name"]),
    Column("STATUS", lambda row: row["contractStatus"]),
    Column("ERRORS", lambda row: row["errors"]),
    Column("WARNINGS", lambda row: row["warnings"]),
    Column("UNKNOWN", lambda row: row["unknowns"]),
    Column("VERSION", lambda row: row["contractVersion"]),
    Column("KERNEL", lambda row: _kernel(row["kernelEvidence"])),
    Column("CHECKED", lambda row: age_or_never(row["checkedSecondsAgo"])),
    Column("TARGET", lambda row: row["target"], wide=True),
    Column("VERIFIED", lambda row: "{evaluated}/{required}".format(**row["verified"]), wide=True),
)
NAMESPACE: Final = Column("NAMESPACE", lambda row: row["namespace"])


def age_or_never(seconds: float | None) -> str:
    """An age, or that it never was."""
    return "never" if seconds is None else age(seconds)


def _kernel(summary: Raw | None) -> str:
    """Pods whose kernel view is complete, of all."""
    if not summary:
        return "-"
    levels = [int(summary.get(level) or 0) for level in ("complete", "partial", "failed", "stale")]
    return f"{levels[0]}/{sum(levels)}"


def status_table(data: Raw, *, wide: bool, headers: bool = True) -> str:
    """The one screen."""
    lines = _head(data)
    rows = table(data["pactos"], _columns(data), wide=wide, headers=headers)
    if rows:
        lines += ["", rows]
    for item in data["pactos"]:
        details = list(_details(item))
        if details:
            lines += ["", printable(f"{item['namespace']}/{item['name']}"), *details]
    if any(item["findings"] or item["problems"] for item in data["pactos"]):
        lines += ["", EXPLAINED]
    return "\n".join(lines)


def status_changes(before: Raw, data: Raw, *, wide: bool) -> str:
    """What is other than before, line by line: of the head, and each Pacto that changed with its details.

    A Pacto that is gone has the status Deleted.
    """
    known = {(item["namespace"], item["name"]): item for item in before["pactos"]}
    now = {(item["namespace"], item["name"]): item for item in data["pactos"]}
    gone = [{**item, "contractStatus": "Deleted"} for key, item in known.items() if key not in now]
    everything = [*data["pactos"], *gone]
    rows = table(everything, _columns(data), wide=wide, headers=False).splitlines()
    lines = [line for line in _head(data) if line not in _head(before)]
    for item, row in zip(everything, rows, strict=True):
        key = (item["namespace"], item["name"])
        if key not in now:
            lines.append(row)
        elif key not in known or steady(known[key]) != steady(item):
            lines += [row, *_details(item)]
    return "".join(f"{line}\n" for line in lines)


def _head(data: Raw) -> list[str]:
    return [
        f"Operator     {_said(data['operator'], 'not found')}",
        f"Node agent   {_said(data['nodeAgent'], 'off')}{_nodes(data['nodes'])}",
        f"Pactos       {_counts(data['verdicts']) or 'none'}",
        *(printable(f"warning: {text}") for text in data["warnings"]),
    ]


def _columns(data: Raw) -> Sequence[Column]:
    return COLUMNS if data["namespace"] else (NAMESPACE, *COLUMNS)


def _said(component: Raw | None, otherwise: str) -> str:
    if component is None:
        return otherwise
    ready = f"{component['ready']}/{component['desired']} ready"
    updating = ", updating" if component["updated"] < component["desired"] else ""
    where = f"{component['namespace']}/{component['name']}"
    return printable(f"{ready}{updating}, {where} {_tag(component['image'])}".rstrip())


def _tag(image: str) -> str:
    name, _, tag = image.rpartition(":")
    return tag if name and "/" not in tag else ""


def _nodes(states: Mapping[str, int]) -> str:
    bad = {name: count for name, count in states.items() if name not in (NodeState.RUNNING, "Unsupported")}
    total = sum(states.values()) - states.get("Unsupported", 0)
    if not total or bad == {"NoAgent": total}:
        return ""
    return f"; nodes: {states.get('Running', 0)}/{total} Running" + (f", {_counts(bad)}" if bad else "")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _details(item: Raw) -> Iterator[str]:
    for problem in item["problems"]:
        yield from indented(f"{problem['severity']:<8} {problem['reason']}", problem["message"])
    for finding in item["findings"]:
        yield from finding_lines(finding)
    yield from window_lines(item["observationWindows"], item["findings"])


def finding_lines(finding: Raw) -> Iterator[str]:
    """A finding in two lines or more: what it is with who saw it, and its message."""
    head = f"{finding.get('severity', ''):<8} {finding.get('code', '')} {finding.get('subject', '')}".rstrip()
    collectors = sorted({str(ref.get("collector")) for ref in finding.get("evidenceRefs") or ()})
    yield from indented(head + (f" [{', '.join(collectors)}]" if collectors else ""), finding["message"])
