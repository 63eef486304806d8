# SPDX-License-Identifier: MIT
"""One check of one Pacto: contract, snapshot, evidence, verdict, status. The operator and `evaluate`
both run exactly this.

The one place that joins observers and engine. Reads nothing: objects, clock and contract are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_pacto.conformance.source import Loaded
from kubectl_pacto.conformance.status import StatusParts, build_status
from kubectl_pacto.engine.evaluate import Verdict, evaluate
from kubectl_pacto.engine.ladder import ContractStatus, Summary, derive_status, summarize
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.evidence import EvidenceSet
from kubectl_pacto.model.finding import Finding
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Options, Snapshot
from kubectl_pacto.observe.evidence import observe


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check: the status to write, and the evidence, None where none was looked for.

    `next_check` is when to look again sooner than the interval, POSIX seconds.
    """

    status: Mapping[str, Any]
    contract_status: ContractStatus
    summary: Summary
    evidence: EvidenceSet | None = None
    next_check: float | None = None


def check(pacto: Pacto, cluster: Cluster, loaded: Loaded, *, at: float, options: Options) -> Checked:
    """Check one Pacto against a cluster at a moment (POSIX seconds)."""
    parts = StatusParts(pacto, loaded, at)
    contract = loaded.validated.contract
    if loaded.unavailable:
        return _without_evidence(parts, ContractStatus.UNKNOWN, Summary(unknowns=1))
    if contract is None or loaded.validated.errors:
        return _without_evidence(parts, ContractStatus.INVALID, Summary(errors=1))
    if pacto.is_reference:
        return _without_evidence(parts, ContractStatus.REFERENCE, Summary())
    snapshot = Snapshot(at, pacto, contract, cluster, options, loaded.files)
    observed = observe(snapshot)
    verdict = evaluate(contract, observed.evidence)
    findings = (*_contract_findings(loaded), *verdict.findings)
    summary = summarize(findings)
    status = derive_status(summary, evaluated=verdict.evaluated, required=verdict.required)
    body = build_status(
        parts,
        status,
        summary,
        verdict=Verdict(findings, verdict.evaluated, verdict.required, verdict.unverified),
        observed=observed,
        snapshot=snapshot,
    )
    return Checked(body, status, summary, observed.evidence, observed.next_check)


def _without_evidence(parts: StatusParts, status: ContractStatus, summary: Summary) -> Checked:
    return Checked(build_status(parts, status, summary), status, summary)


def _contract_findings(loaded: Loaded) -> tuple[Finding, ...]:
    """What is wrong with a valid contract: warnings, which count toward the status."""
    return tuple(
        Finding(issue.code, issue.severity, issue.message, contract_path=issue.path)
        for issue in loaded.validated.warnings
    )
