# SPDX-License-Identifier: MIT
"""From findings to one word: Invalid > NonCompliant > Unknown > Warning > Compliant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kubectl_pacto.model.finding import Finding, Severity


class ContractStatus(StrEnum):
    """Whether a service keeps its contract. NOT_EVALUATED is in the schema and never given."""

    COMPLIANT = "Compliant"
    WARNING = "Warning"
    NON_COMPLIANT = "NonCompliant"
    REFERENCE = "Reference"
    UNKNOWN = "Unknown"
    INVALID = "Invalid"
    NOT_EVALUATED = "NotEvaluated"


@dataclass(frozen=True, slots=True)
class Summary:
    """How many findings there are of each severity."""

    errors: int = 0
    warnings: int = 0
    infos: int = 0
    unknowns: int = 0


def summarize(findings: Iterable[Finding]) -> Summary:
    """Count findings by severity."""
    severities = [finding.severity for finding in findings]
    return Summary(
        errors=severities.count(Severity.ERROR),
        warnings=severities.count(Severity.WARNING),
        infos=severities.count(Severity.INFO),
        unknowns=severities.count(Severity.UNKNOWN),
    )


def derive_status(summary: Summary, *, evaluated: int, required: int) -> ContractStatus:
    """The status of a contract that was evaluated; infos never count."""
    if summary.errors:
        return ContractStatus.NON_COMPLIANT
    if summary.unknowns or evaluated < required:
        return ContractStatus.UNKNOWN
    return ContractStatus.WARNING if summary.warnings else ContractStatus.COMPLIANT
