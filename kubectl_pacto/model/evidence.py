# SPDX-License-Identifier: MIT
"""What was observed about a service, and how surely: the only thing the engine judges by.

Built by the observers (and decoded from foreign evidence). An observation that breaks an invariant
cannot be built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from kubectl_pacto.model.instant import format_instant

SOURCE: Final = "k8s"


class Collector(StrEnum):
    """Where an observation came from."""

    API = "k8s-observer"
    API_AND_KERNEL = "k8s-observer+ebpf"
    KERNEL = "ebpf"


class Outcome(StrEnum):
    """How an observation ended; everything but OBSERVED is a way of not knowing."""

    OBSERVED = "Observed"
    UNSUPPORTED = "Unsupported"
    FAILED = "Failed"
    STALE = "Stale"
    INSUFFICIENT = "Insufficient"


class Kind(StrEnum):
    """What is observed."""

    INTERFACE = "InterfaceObserved"
    INTERFACE_PROTOCOL = "InterfaceProtocolObserved"
    INTERFACE_EXPOSURE = "InterfaceExposureObserved"
    CAPABILITY = "CapabilityObserved"
    DEPENDENCY = "DependencyReachable"
    DEPENDENCY_VERSION = "DependencyVersionObserved"
    UNDECLARED_PEER = "UndeclaredPeerObserved"
    CONFIGURATION = "ConfigurationPresent"
    WORKLOAD = "WorkloadObserved"
    PERSISTENCE = "PersistenceObserved"
    PERSISTENCE_SCOPE = "PersistenceScopeObserved"


# kind -> (the kind of its subject, the fields of its value with their types)
SHAPES: Final[Mapping[Kind, tuple[str, Mapping[str, type]]]] = MappingProxyType(
    {
        Kind.INTERFACE: ("interface", {"type": str, "present": bool}),
        Kind.INTERFACE_PROTOCOL: ("interface", {"protocol": str}),
        Kind.INTERFACE_EXPOSURE: ("interface", {"exposure": str}),
        Kind.CAPABILITY: ("capability", {"present": bool}),
        Kind.DEPENDENCY: ("dependency", {"reachable": bool}),
        Kind.DEPENDENCY_VERSION: ("dependency", {"version": str}),
        Kind.UNDECLARED_PEER: ("dependency", {"namespace": str, "service": str}),
        Kind.CONFIGURATION: ("configuration", {"present": bool, "conformant": bool}),
        Kind.WORKLOAD: ("service", {"type": str}),
        Kind.PERSISTENCE: ("service", {"durable": bool}),
        Kind.PERSISTENCE_SCOPE: ("service", {"scope": str}),
    }
)

Value = Mapping[str, bool | str]


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation about one subject; `why` is for people and never decides anything.

    Raises ValueError when it is Observed without a value of its kind's shape, or not Observed
    with one.
    """

    kind: Kind
    subject: str
    outcome: Outcome
    detected_at: float
    value: Value | None = None
    collector: str = Collector.API
    why: str = ""

    def __post_init__(self) -> None:
        if not self.subject or not self.collector:
            raise ValueError(f"{self.kind}: an observation has a subject and a collector")
        if (self.outcome is Outcome.OBSERVED) != (self.value is not None):
            raise ValueError(f"{self.kind} of {self.subject}: exactly an Observed outcome carries a value")
        if self.value is not None:
            fields = SHAPES[self.kind][1]
            if self.value.keys() != fields.keys() or any(
                not isinstance(self.value[name], kind) for name, kind in fields.items()
            ):
                raise ValueError(f"{self.kind} of {self.subject}: {dict(self.value)} is not of its shape")

    @property
    def subject_kind(self) -> str:
        """The kind of the subject, which the observation's kind fixes."""
        return SHAPES[self.kind][0]


@dataclass(frozen=True, slots=True)
class EvidenceSet:
    """Everything observed about one target in one pass.

    Raises ValueError when two observations answer the same question.
    """

    subject: str
    contract_ref: str
    observed_at: float
    observations: tuple[Observation, ...]
    source: str = SOURCE

    def __post_init__(self) -> None:
        seen = {(item.kind, item.subject) for item in self.observations}
        if len(seen) != len(self.observations):
            raise ValueError(f"{self.subject}: two observations of one kind and subject")

    def find(self, kind: Kind, subject: str) -> Observation | None:
        """The observation of this kind about this subject."""
        for item in self.observations:
            if item.kind is kind and item.subject == subject:
                return item
        return None


def encode_evidence(evidence: EvidenceSet) -> dict[str, Any]:
    """The evidence as `evaluate --evidence` prints it."""
    return {
        "subject": {"kind": "service", "name": evidence.subject},
        "contractRef": evidence.contract_ref,
        "source": evidence.source,
        "observedAt": format_instant(evidence.observed_at),
        "observations": [_encode_observation(item) for item in evidence.observations],
    }


def _encode_observation(item: Observation) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "kind": item.kind.value,
        "subject": {"kind": item.subject_kind, "name": item.subject},
        "outcome": item.outcome.value,
    }
    if item.value is not None:
        raw["value"] = dict(item.value)
    raw["provenance"] = {
        "collector": str(item.collector),
        "detectedAt": format_instant(item.detected_at),
    }
    return raw
