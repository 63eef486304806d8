# SPDX-License-Identifier: MIT
"""Small parts that every rule of the engine builds its answer from."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_pacto.model.evidence import Collector, EvidenceSet, Observation
from kubectl_pacto.model.finding import EvidenceRef, Finding, Severity


@dataclass(frozen=True, slots=True)
class Unverified:
    """A check that no fact could decide, and why; it never changes the status."""

    contract_path: str
    reason: str


def evidence_ref(evidence: EvidenceSet, observation: Observation | None) -> EvidenceRef:
    """The reference to an observation, to the whole set where there is none."""
    if observation is None:
        return EvidenceRef(evidence.source, Collector.API, evidence.observed_at, evidence.observed_at)
    return EvidenceRef(
        evidence.source, str(observation.collector), evidence.observed_at, observation.detected_at
    )


def runtime_finding(
    evidence: EvidenceSet,
    observation: Observation,
    code: str,
    severity: Severity,
    *,
    path: str,
    words: str,
) -> Finding:
    """A finding that rests on one observation, whose reason it repeats."""
    message = f"{words}: {observation.why}" if observation.why else words
    return Finding(
        code,
        severity,
        message,
        f"{observation.subject_kind}/{observation.subject}",
        path,
        (evidence_ref(evidence, observation),),
    )
