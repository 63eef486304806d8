# SPDX-License-Identifier: MIT
"""A check's outcome as a Pacto's status: plain JSON with the field names of the CRD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubectl_pacto.conformance.conditions import build_conditions
from kubectl_pacto.conformance.declared import declared_fields
from kubectl_pacto.conformance.runtime import runtime_fields
from kubectl_pacto.conformance.source import Loaded, resolution_policy
from kubectl_pacto.engine.evaluate import Verdict
from kubectl_pacto.engine.ladder import ContractStatus, Summary
from kubectl_pacto.model.finding import Finding, Issue
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.coverage import Level
from kubectl_pacto.observe.evidence import KernelSummary, Observed


@dataclass(frozen=True, slots=True)
class StatusParts:
    """What every status starts from."""

    pacto: Pacto
    loaded: Loaded
    at: float


def build_status(
    parts: StatusParts,
    status: ContractStatus,
    summary: Summary,
    *,
    verdict: Verdict | None = None,
    observed: Observed | None = None,
    snapshot: Snapshot | None = None,
) -> dict[str, Any]:
    """The status object; without a verdict the one of a Pacto that was not evaluated."""
    pacto, loaded, at = parts.pacto, parts.loaded, parts.at
    body: dict[str, Any] = {"contractStatus": status.value}
    if verdict is not None:
        body["evaluationCoverage"] = _coverage(verdict)
    windows = observed.windows if observed is not None else _kept_windows(pacto, status)
    if windows:
        body["observationWindows"] = [
            {"kind": kind, "subject": subject, "firstObservedNegativeAt": format_time(start)}
            for (kind, subject), start in sorted(windows.items())
        ]
    policy = resolution_policy(pacto)
    if policy:
        body["resolutionPolicy"] = policy
    body["summary"] = {
        "errorCount": summary.errors,
        "warningCount": summary.warnings,
        "infoCount": summary.infos,
        "unknownCount": summary.unknowns,
    }
    if not loaded.unavailable:
        body["validation"] = _validation(loaded)
    if loaded.validated.contract is not None:
        body.update(declared_fields(pacto, loaded.validated.contract, loaded.resolved_ref, at, loaded.files))
    elif loaded.unavailable:
        body.update(_last_published(pacto))
    if verdict is not None:
        body["findings"] = [_finding(item) for item in verdict.findings]
    if snapshot is not None:
        body.update(runtime_fields(snapshot))
    if observed is not None and observed.kernel is not None:
        body["kernelEvidence"] = _kernel(observed.kernel)
    body["conditions"] = build_conditions(pacto, loaded, snapshot, at)
    if pacto.status.get("currentRevision"):
        body["currentRevision"] = pacto.status["currentRevision"]
    body["lastReconciledAt"] = format_instant(at)
    if pacto.generation:
        body["observedGeneration"] = pacto.generation
    return body


def format_time(instant: float) -> str:
    """A time with its milliseconds, where it has any: a window must not begin earlier than it did."""
    return format_instant(instant, digits=0 if float(instant).is_integer() else 3)


def _last_published(pacto: Pacto) -> dict[str, Any]:
    # Others resolve their dependencies by it: a registry that is away for a minute must not take
    # a provider from everybody who depends on it.
    return {name: pacto.status[name] for name in ("contract", "contractVersion") if pacto.status.get(name)}


def _kept_windows(pacto: Pacto, status: ContractStatus) -> dict[tuple[str, str], float]:
    # A contract that cannot be had for now says nothing about what was seen, but a window proves a
    # continuous negative and nobody looked: only capability and configuration windows survive.
    if status is not ContractStatus.UNKNOWN:
        return {}
    return {key: start for key, start in pacto.windows.items() if key[0] not in ("interface", "dependency")}


def _coverage(verdict: Verdict) -> dict[str, Any]:
    coverage: dict[str, Any] = {"evaluated": verdict.evaluated, "required": verdict.required}
    if verdict.unverified:
        coverage["unverified"] = [
            {"contractPath": item.contract_path, "reason": item.reason} for item in verdict.unverified
        ]
    return coverage


def _validation(loaded: Loaded) -> dict[str, Any]:
    validated = loaded.validated
    body: dict[str, Any] = {"valid": not validated.errors and validated.contract is not None}
    for name, issues in (("errors", validated.errors), ("warnings", validated.warnings)):
        if issues:
            body[name] = [_issue(item) for item in issues]
    return body


def _issue(issue: Issue) -> dict[str, str]:
    fields = {"code": issue.code, "path": issue.path, "message": issue.message}
    return {name: value for name, value in fields.items() if value}


def _finding(finding: Finding) -> dict[str, Any]:
    body: dict[str, Any] = {
        "code": finding.code,
        "severity": finding.severity.value,
        "category": finding.category.value,
        "subject": finding.subject,
        "contractPath": finding.contract_path,
        "message": finding.message,
        "evidenceRefs": [
            {
                "source": ref.source,
                "collector": ref.collector,
                "observedAt": format_instant(ref.observed_at),
                "detectedAt": format_instant(ref.detected_at),
            }
            for ref in finding.evidence
        ],
    }
    return {name: value for name, value in body.items() if value}


def _kernel(kernel: KernelSummary) -> dict[str, Any]:
    body: dict[str, Any] = {level.name.lower(): kernel.levels.get(level, 0) for level in Level}
    body["reasons"] = dict(kernel.reasons)
    return body
