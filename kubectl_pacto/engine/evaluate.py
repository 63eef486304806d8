# SPDX-License-Identifier: MIT
"""Contract and evidence to findings and coverage. No clock, no cluster: the judge reads the file only.

One rule for every assertion: evidence that is not Observed makes a required assertion unknown and
says nothing about an optional one; Observed evidence counts, and contradicts as an error, or as a
warning where the assertion is optional.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kubectl_pacto.engine.refinements import check_dependency, check_interface, check_scope
from kubectl_pacto.engine.verdict import Unverified, evidence_ref, runtime_finding
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.evidence import SHAPES, EvidenceSet, Kind, Observation, Outcome, Value
from kubectl_pacto.model.finding import Finding, Severity

INCONCLUSIVE: Final = {
    Outcome.UNSUPPORTED: "OBSERVATION_UNSUPPORTED",
    Outcome.FAILED: "COLLECTION_FAILED",
    Outcome.STALE: "EVIDENCE_STALE",
    Outcome.INSUFFICIENT: "EVIDENCE_INSUFFICIENT",
}
# when an observer that could read the target has nothing to say of an assertion
_MISSING: Final = {
    Kind.INTERFACE: "the Service that spec.target names does not exist",
    Kind.WORKLOAD: "the workload that spec.target names does not exist",
    Kind.PERSISTENCE: "the workload that spec.target names does not exist",
}
# what an Observed value contradicts: a code and words, or None if it contradicts nothing
Judge = Callable[[Value], tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What evidence says of a contract. `required` assertions, of which `evaluated` had evidence."""

    findings: tuple[Finding, ...] = ()
    evaluated: int = 0
    required: int = 0
    unverified: tuple[Unverified, ...] = ()


@dataclass(frozen=True, slots=True)
class _Assertion:
    kind: Kind
    subject: str
    path: str
    required: bool
    judge: Judge
    what: str


@dataclass(slots=True)
class _Ledger:
    evidence: EvidenceSet
    findings: list[Finding] = field(default_factory=list)
    unverified: list[Unverified] = field(default_factory=list)
    evaluated: int = 0
    required: int = 0

    def assess(self, claim: _Assertion) -> Observation | None:
        """Judge one assertion; its observation if it was Observed."""
        observation = self.evidence.find(claim.kind, claim.subject)
        self.required += claim.required
        if observation is None or observation.value is None:
            if claim.required:
                self.findings.append(_unknown(self.evidence, claim, observation))
            return None
        self.evaluated += claim.required
        contradiction = claim.judge(observation.value)
        if contradiction is not None:
            code, words = contradiction
            severity = Severity.ERROR if claim.required else Severity.WARNING
            self.findings.append(
                runtime_finding(
                    self.evidence,
                    observation,
                    code,
                    severity,
                    path=claim.path,
                    words=f"{claim.what} {words}",
                )
            )
        return observation


def evaluate(contract: Contract, evidence: EvidenceSet) -> Verdict:
    """What the evidence says of each of the contract's assertions, in the contract's order."""
    ledger = _Ledger(evidence)
    for claim in _interfaces(contract):
        observation = ledger.assess(claim)
        if observation is not None and observation.value and observation.value["present"] is True:
            interface = next(item for item in contract.interfaces if item.name == claim.subject)
            check_interface(evidence, interface, ledger.findings, ledger.unverified)
    _assess_capabilities(contract, ledger)
    for claim in _dependencies(contract):
        if ledger.assess(claim) is not None:
            dependency = next(item for item in contract.dependencies if item.name == claim.subject)
            check_dependency(evidence, dependency, ledger.findings, ledger.unverified)
    _add_undeclared(ledger)
    for claim in _configurations(contract):
        ledger.assess(claim)
    for claim in _service_claims(contract):
        observation = ledger.assess(claim)
        if observation is not None and claim.kind is Kind.PERSISTENCE and contract.state is not None:
            check_scope(evidence, contract, ledger.findings, ledger.unverified)
    return Verdict(tuple(ledger.findings), ledger.evaluated, ledger.required, tuple(ledger.unverified))


def _unknown(evidence: EvidenceSet, claim: _Assertion, observation: Observation | None) -> Finding:
    if observation is None:
        refs = (evidence_ref(evidence, None),)
        subject = f"{SHAPES[claim.kind][0]}/{claim.subject}"
        message = f"{claim.what} is not known: {_MISSING.get(claim.kind, 'nothing was observed')}"
        return Finding("EVIDENCE_MISSING", Severity.UNKNOWN, message, subject, claim.path, refs)
    code = INCONCLUSIVE[observation.outcome]
    words = f"{claim.what} is not known"
    return runtime_finding(evidence, observation, code, Severity.UNKNOWN, path=claim.path, words=words)


def _interfaces(contract: Contract) -> list[_Assertion]:
    def judge(value: Value) -> tuple[str, str] | None:
        return None if value["present"] else ("INTERFACE_ABSENT", "is absent")

    return [
        _Assertion(
            Kind.INTERFACE, item.name, f"interfaces[name={item.name}]", True, judge, f"interface {item.name}"
        )
        for item in contract.interfaces
    ]


def _dependencies(contract: Contract) -> list[_Assertion]:
    def judge(value: Value) -> tuple[str, str] | None:
        return None if value["reachable"] else ("DEPENDENCY_UNREACHABLE", "is unreachable")

    return [
        _Assertion(
            Kind.DEPENDENCY,
            item.name,
            f"dependencies[name={item.name}]",
            item.required,
            judge,
            f"dependency {item.name}",
        )
        for item in contract.dependencies
    ]


def _assess_capabilities(contract: Contract, ledger: _Ledger) -> None:
    def judge(value: Value) -> tuple[str, str] | None:
        return None if value["present"] else ("CAPABILITY_ABSENT", "is absent")

    for item in contract.capabilities:
        if item.type == "extension":
            ledger.required += 1
            message = f"capability {item.ref}: nothing here can evaluate an extension"
            path = f"capabilities[ref={item.ref}]"
            ledger.findings.append(
                Finding(
                    "EXTENSION_EVALUATOR_UNAVAILABLE",
                    Severity.UNKNOWN,
                    message,
                    f"capability/{item.ref}",
                    path,
                    (evidence_ref(ledger.evidence, None),),
                )
            )
        else:
            path = f"capabilities[type={item.type}]"
            what = f"capability {item.type}"
            ledger.assess(_Assertion(Kind.CAPABILITY, item.key, path, True, judge, what))


def _add_undeclared(ledger: _Ledger) -> None:
    for item in ledger.evidence.observations:
        if item.kind is Kind.UNDECLARED_PEER and item.value is not None:
            service = f"Service {item.value['namespace']}/{item.value['service']}"
            words = f"dependency {item.subject} is used but not declared ({service})"
            ledger.findings.append(
                runtime_finding(
                    ledger.evidence,
                    item,
                    "DEPENDENCY_UNDECLARED",
                    Severity.WARNING,
                    path="dependencies",
                    words=words,
                )
            )


def _configurations(contract: Contract) -> list[_Assertion]:
    def judge(value: Value) -> tuple[str, str] | None:
        if not value["present"]:
            return "CONFIGURATION_ABSENT", "is absent"
        return None if value["conformant"] else ("CONFIGURATION_MISMATCH", "does not satisfy its schema")

    return [
        _Assertion(
            Kind.CONFIGURATION,
            item.name,
            f"configurations[name={item.name}]",
            item.required,
            judge,
            f"configuration {item.name}",
        )
        for item in contract.configurations
    ]


def _service_claims(contract: Contract) -> list[_Assertion]:
    def judge_workload(value: Value) -> tuple[str, str] | None:
        if value["type"] == contract.workload:
            return None
        return "WORKLOAD_MISMATCH", f"runs as a {value['type']}, declared is {contract.workload}"

    def judge_durability(value: Value) -> tuple[str, str] | None:
        return (
            None
            if value["durable"]
            else ("PERSISTENCE_MISMATCH", "is declared and nothing durable holds the state")
        )

    claims = []
    if contract.workload:
        claims.append(
            _Assertion(Kind.WORKLOAD, contract.service, "workload", True, judge_workload, "workload")
        )
    if contract.state is not None and contract.state.durability == "persistent":
        path = "state.persistence.durability"
        claims.append(
            _Assertion(Kind.PERSISTENCE, contract.service, path, True, judge_durability, "persistence")
        )
    return claims
