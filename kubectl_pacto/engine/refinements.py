# SPDX-License-Identifier: MIT
"""Protocol, visibility, version and scope: checks that refine an assertion already observed.

A check without a usable fact is unverified, which never changes the status.
"""

from __future__ import annotations

from typing import Final

from kubectl_pacto.engine.verdict import Unverified, runtime_finding
from kubectl_pacto.model.contract import Contract, Dependency, Interface, InterfaceType, Visibility
from kubectl_pacto.model.evidence import EvidenceSet, Kind, Observation
from kubectl_pacto.model.finding import Finding, Severity
from kubectl_pacto.model.ranges import in_range

# what an interface of a type cannot answer
_CONTRADICTS: Final = {
    InterfaceType.OPENAPI: frozenset({"other"}),
    InterfaceType.GRPC: frozenset({"http1", "other"}),
}
_CONFIRMS: Final = {
    InterfaceType.OPENAPI: frozenset({"http1", "http2"}),
    InterfaceType.GRPC: frozenset({"http2"}),
}


def check_interface(
    evidence: EvidenceSet, interface: Interface, findings: list[Finding], unverified: list[Unverified]
) -> None:
    """Protocol and visibility of an interface that is present."""
    base = f"interfaces[name={interface.name}]"
    _check_type(evidence, interface, f"{base}.type", findings, unverified)
    _check_visibility(evidence, interface, f"{base}.visibility", findings, unverified)


def _fact(evidence: EvidenceSet, kind: Kind, subject: str, name: str) -> tuple[Observation | None, str, str]:
    """An observation, the one value it carries, and why there is none."""
    observation = evidence.find(kind, subject)
    if observation is None or observation.value is None:
        return None, "", observation.why if observation and observation.why else "nothing was observed"
    return observation, str(observation.value[name]), observation.why


def _check_type(
    evidence: EvidenceSet,
    interface: Interface,
    path: str,
    findings: list[Finding],
    unverified: list[Unverified],
) -> None:
    if interface.type is InterfaceType.ASYNCAPI:
        unverified.append(Unverified(path, "no probe tells an asyncapi interface"))
        return
    observation, protocol, why = _fact(evidence, Kind.INTERFACE_PROTOCOL, interface.name, "protocol")
    if observation is None:
        unverified.append(Unverified(path, why))
    elif protocol in _CONTRADICTS[interface.type]:
        words = f"interface {interface.name} is declared {interface.type} and answers as {protocol}"
        findings.append(
            runtime_finding(
                evidence, observation, "INTERFACE_PROTOCOL_MISMATCH", Severity.ERROR, path=path, words=words
            )
        )
    elif protocol not in _CONFIRMS[interface.type]:
        unverified.append(Unverified(path, f"the port answers as {protocol}, which hides its protocol"))


def _check_visibility(
    evidence: EvidenceSet,
    interface: Interface,
    path: str,
    findings: list[Finding],
    unverified: list[Unverified],
) -> None:
    observation, exposure, why = _fact(evidence, Kind.INTERFACE_EXPOSURE, interface.name, "exposure")
    declared = interface.effective_visibility
    if observation is None or exposure not in ("external", "internal"):
        unverified.append(Unverified(path, why))
    elif declared is Visibility.INTERNAL and exposure == "external":
        words = f"interface {interface.name} is internal and exposed outside the cluster"
        findings.append(
            runtime_finding(
                evidence,
                observation,
                "INTERFACE_VISIBILITY_MISMATCH",
                Severity.ERROR,
                path=path,
                words=words,
            )
        )
    elif declared is Visibility.PUBLIC and exposure == "internal":
        reason = "seen only inside the cluster; a gateway that is not seen here may expose it"
        unverified.append(Unverified(path, reason))


def check_dependency(
    evidence: EvidenceSet, dependency: Dependency, findings: list[Finding], unverified: list[Unverified]
) -> None:
    """The version of a dependency that was observed."""
    path = f"dependencies[name={dependency.name}].compatibility"
    observation, version, why = _fact(evidence, Kind.DEPENDENCY_VERSION, dependency.name, "version")
    if observation is None:
        unverified.append(Unverified(path, why))
        return
    inside = in_range(version, dependency.compatibility)
    if inside is None:
        reason = f"version {version!r} and range {dependency.compatibility!r} cannot be compared"
        unverified.append(Unverified(path, reason))
    elif not inside:
        severity = Severity.ERROR if dependency.required else Severity.WARNING
        words = f"dependency {dependency.name} runs version {version}, outside {dependency.compatibility}"
        findings.append(
            runtime_finding(
                evidence, observation, "DEPENDENCY_VERSION_MISMATCH", severity, path=path, words=words
            )
        )


def check_scope(
    evidence: EvidenceSet, contract: Contract, findings: list[Finding], unverified: list[Unverified]
) -> None:
    """Whether the claims of a service whose persistence was observed are shared among its pods."""
    path = "state.persistence.scope"
    observation, scope, why = _fact(evidence, Kind.PERSISTENCE_SCOPE, contract.service, "scope")
    declared = contract.state.scope if contract.state else ""
    if observation is None or scope not in ("local", "shared"):
        unverified.append(Unverified(path, why))
    elif declared == "local" and scope == "shared":
        words = "state is declared local and its pods share a volume claim"
        findings.append(
            runtime_finding(
                evidence, observation, "PERSISTENCE_MISMATCH", Severity.ERROR, path=path, words=words
            )
        )
    elif declared == "shared" and scope == "local":
        reason = "no claim is shared here; the shared store may live outside the cluster"
        unverified.append(Unverified(path, reason))
