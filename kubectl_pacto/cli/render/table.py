# SPDX-License-Identifier: MIT
"""Results for a person: one line per Pacto, then each finding with what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from kubectl_pacto.cli.render.result import Result
from kubectl_pacto.cli.render.severities import EXPLAINED, severity_rank
from kubectl_pacto.cli.render.windows import window_lines
from kubectl_pacto.cli.terminal import printable
from kubectl_pacto.model.evidence import Observation

WIDTH = 100
HEADERS = ("NAMESPACE", "NAME", "STATUS", "ERRORS", "WARNINGS", "UNKNOWN", "EVALUATED")


def render_table(results: Sequence[Result], *, with_evidence: bool = False) -> str:
    """A table of all results and the details of those that have any."""
    rows = [_row(result) for result in results]
    lines = [line.rstrip() for line in tabulate(rows, headers=HEADERS, tablefmt="plain").splitlines()]
    for result in results:
        details = list(_details(result, with_evidence))
        if details:
            lines += ["", f"{result.namespace}/{result.name}", *details]
    if any(_has_codes(result.checked.status) for result in results):
        lines += ["", EXPLAINED]
    return "".join(f"{printable(line)}\n" for line in lines)


def _has_codes(status: Mapping[str, Any]) -> bool:
    return bool(status.get("findings") or (status.get("validation") or {}).get("errors"))


def _row(result: Result) -> tuple[str, ...]:
    status, summary = result.checked.status, result.checked.summary
    coverage = status.get("evaluationCoverage")
    return (
        result.namespace,
        result.name,
        result.checked.contract_status.value,
        str(summary.errors),
        str(summary.warnings),
        str(summary.unknowns),
        f"{coverage['evaluated']}/{coverage['required']}" if coverage else "-",
    )


def _details(result: Result, with_evidence: bool) -> Iterator[str]:
    status = result.checked.status
    for issue in status.get("validation", {}).get("errors", ()):
        where = f" {issue['path']}" if issue.get("path") else ""
        yield from _wrap(f"error    {issue.get('code', 'INVALID')}{where}", issue["message"])
    for finding in sorted(status.get("findings", ()), key=severity_rank):
        head = f"{finding['severity']:<8} {finding['code']} {finding.get('subject', '')}".rstrip()
        collectors = sorted({ref["collector"] for ref in finding.get("evidenceRefs", ())})
        source = f" [{', '.join(collectors)}]" if collectors else ""
        yield from _wrap(head + source, finding["message"])
    if not status.get("findings") and result.checked.contract_status.value == "Unknown":
        for condition in status["conditions"]:
            if condition["status"] == "Unknown":
                yield from _wrap(f"unknown  {condition['type']} {condition['reason']}", condition["message"])
    yield from window_lines(status.get("observationWindows", ()), status.get("findings", ()))
    if with_evidence and result.checked.evidence is not None:
        for observation in result.checked.evidence.observations:
            yield from _wrap(_evidence(observation), observation.why)


def _evidence(observation: Observation) -> str:
    value = ", ".join(f"{name}={value}" for name, value in (observation.value or {}).items())
    shown = f" {value.replace('True', 'true').replace('False', 'false')}" if value else ""
    subject = f"{observation.subject_kind}/{observation.subject}"
    return f"evidence {observation.kind} {subject} {observation.outcome}{shown} [{observation.collector}]"


def _wrap(head: str, message: str) -> Iterator[str]:
    yield f"  {head}"
    yield from textwrap.wrap(
        message, WIDTH, initial_indent=" " * 11, subsequent_indent=" " * 11, break_on_hyphens=False
    )
