# SPDX-License-Identifier: MIT
"""Findings: a code, how bad, about what, and the evidence it rests on. Plus the registry of codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Severity(StrEnum):
    """How a finding counts toward the contract status."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    UNKNOWN = "unknown"


class Category(StrEnum):
    """What a finding is about."""

    INTERFACE_MISMATCH = "InterfaceMismatch"
    STATE_MISMATCH = "StateMismatch"
    POLICY_VIOLATION = "PolicyViolation"
    CONFIGURATION_VIOLATION = "ConfigurationViolation"
    MISSING_CONFIGURATION = "MissingConfiguration"
    INVALID_REFERENCE = "InvalidReference"
    UNRESOLVED_REFERENCE = "UnresolvedReference"
    REFERENCE_CYCLE = "ReferenceCycle"
    DUPLICATE_NAME = "DuplicateName"
    INVALID_VERSION = "InvalidVersion"
    INVALID_READINESS = "InvalidReadiness"
    MISSING_EVIDENCE = "MissingEvidence"
    INVALID_FILE = "InvalidFile"
    SCHEMA_VIOLATION = "SchemaViolation"
    RUNTIME_DRIFT = "RuntimeDrift"
    INVALID_DEPENDENCY = "InvalidDependency"
    INVALID_CAPABILITY = "InvalidCapability"
    INCONCLUSIVE = "Inconclusive"
    NONE = ""


_BY_CATEGORY: Final[Mapping[Category, str]] = {
    Category.INVALID_VERSION: "UNSUPPORTED_PACTO_VERSION INVALID_SEMVER",
    Category.SCHEMA_VIOLATION: (
        "SCHEMA_ERROR SCHEMA_VIOLATION YAML_PARSE_ERROR INVALID_CONFIG_SCHEMA INVALID_POLICY_SCHEMA"
    ),
    Category.INVALID_REFERENCE: "INVALID_CONFIG_REF INVALID_POLICY_REF INVALID_OCI_REF TAG_NOT_DIGEST",
    Category.DUPLICATE_NAME: (
        "DUPLICATE_INTERFACE_NAME DUPLICATE_CONFIGURATION_NAME DUPLICATE_POLICY_NAME "
        "DUPLICATE_DEPENDENCY_NAME DUPLICATE_CAPABILITY DUPLICATE_READINESS_ID"
    ),
    Category.INVALID_DEPENDENCY: "EMPTY_COMPATIBILITY INVALID_COMPATIBILITY",
    Category.MISSING_CONFIGURATION: "VALUES_WITHOUT_SCHEMA",
    Category.CONFIGURATION_VIOLATION: "CONFIG_VALUES_VALIDATION_FAILED",
    Category.INVALID_FILE: "FILE_NOT_FOUND INVALID_INTERFACE_SPEC INVALID_CONFIG_JSON INVALID_POLICY_JSON",
    Category.INVALID_READINESS: "INVALID_READINESS_EXPIRES INVALID_READINESS_REVISION",
    Category.MISSING_EVIDENCE: "EMPTY_READINESS_EVIDENCE EMPTY_READINESS_DESCRIPTION",
    Category.STATE_MISMATCH: "STATELESS_PERSISTENT_CONFLICT",
    Category.POLICY_VIOLATION: "POLICY_VIOLATION POLICY_ENFORCEMENT_ERROR UNSUPPORTED_POLICY_TARGET",
    Category.UNRESOLVED_REFERENCE: "POLICY_REF_UNRESOLVED POLICY_REF_NOT_ENFORCED",
    Category.REFERENCE_CYCLE: "POLICY_REF_CYCLE",
    Category.INTERFACE_MISMATCH: "INVALID_INTERFACE_TYPE INTERFACE_REF_REQUIRED",
    Category.INVALID_CAPABILITY: (
        "INVALID_CAPABILITY_TYPE CAPABILITY_REF_REQUIRED CAPABILITY_REF_INVALID "
        "CAPABILITY_INTERFACE_UNKNOWN CAPABILITY_PATH_INVALID"
    ),
    Category.RUNTIME_DRIFT: (
        "WORKLOAD_MISMATCH PERSISTENCE_MISMATCH DEPENDENCY_UNREACHABLE CAPABILITY_ABSENT INTERFACE_ABSENT "
        "CONFIGURATION_ABSENT CONFIGURATION_MISMATCH INTERFACE_PROTOCOL_MISMATCH "
        "INTERFACE_VISIBILITY_MISMATCH DEPENDENCY_VERSION_MISMATCH DEPENDENCY_UNDECLARED"
    ),
    Category.INCONCLUSIVE: (
        "EVIDENCE_MISSING OBSERVATION_UNSUPPORTED COLLECTION_FAILED EVIDENCE_STALE EVIDENCE_INSUFFICIENT "
        "EXTENSION_EVALUATOR_UNAVAILABLE"
    ),
}
_WARNINGS: Final = frozenset({"TAG_NOT_DIGEST", "POLICY_REF_NOT_ENFORCED", "DEPENDENCY_UNDECLARED"})


def _severity(code: str, category: Category) -> Severity:
    if category is Category.INCONCLUSIVE:
        return Severity.UNKNOWN
    return Severity.WARNING if code in _WARNINGS else Severity.ERROR


REGISTRY: Final[Mapping[str, tuple[Category, Severity]]] = MappingProxyType(
    {
        code: (category, _severity(code, category))
        for category, codes in _BY_CATEGORY.items()
        for code in codes.split()
    }
)


def category_of(code: str) -> Category:
    """The category of a code; NONE for one the registry does not know."""
    return REGISTRY[code][0] if code in REGISTRY else Category.NONE


def severity_of(code: str) -> Severity:
    """The severity a code has by itself; a code the registry does not know is an error."""
    return REGISTRY[code][1] if code in REGISTRY else Severity.ERROR


@dataclass(frozen=True, slots=True)
class EvidenceRef:
    """Which evidence a finding rests on; times in POSIX seconds."""

    source: str
    collector: str
    observed_at: float
    detected_at: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a service; `subject` is kind/name, empty for the contract itself."""

    code: str
    severity: Severity
    message: str
    subject: str = ""
    contract_path: str = ""
    evidence: tuple[EvidenceRef, ...] = ()

    @property
    def category(self) -> Category:
        """What the finding is about."""
        return category_of(self.code)


@dataclass(frozen=True, slots=True)
class Issue:
    """Something wrong in a contract: a code, where, and what."""

    code: str
    path: str
    message: str

    @property
    def severity(self) -> Severity:
        """Error or warning."""
        return severity_of(self.code)
