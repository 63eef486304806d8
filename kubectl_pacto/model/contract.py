# SPDX-License-Identifier: MIT
"""What a service promises: a contract of version 2.0, parsed and frozen.

Built by the engine's contract layers; read by observers and rules. Order is the author's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class InterfaceType(StrEnum):
    """How an interface is described."""

    OPENAPI = "openapi"
    ASYNCAPI = "asyncapi"
    GRPC = "grpc"


class Visibility(StrEnum):
    """Who an interface is for."""

    PUBLIC = "public"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Interface:
    """A declared interface; `visibility` is what the author wrote, None if nothing."""

    name: str
    type: InterfaceType
    ref: str = ""
    visibility: Visibility | None = None

    @property
    def effective_visibility(self) -> Visibility:
        """The visibility with the default filled in."""
        return self.visibility or Visibility.INTERNAL


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another service this one calls; `compatibility` is a version range."""

    name: str
    ref: str
    compatibility: str
    required: bool


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration the service reads: described by a schema of its bundle or by a reference."""

    name: str
    required: bool
    schema: str = ""
    ref: str = ""
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """A schema the contract itself must satisfy, local or by reference."""

    name: str
    schema: str = ""
    ref: str = ""
    target: str = "contract"


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a capability answers; `type` other than http is possible only in foreign input."""

    type: str
    interface: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Capability:
    """health, metrics, or an extension named by `ref`."""

    type: str
    ref: str = ""
    binding: Binding | None = None

    @property
    def key(self) -> str:
        """What evidence calls it: its type, an extension's ref."""
        return self.ref if self.type == "extension" else self.type


@dataclass(frozen=True, slots=True)
class State:
    """What the service keeps."""

    type: str
    scope: str
    durability: str
    criticality: str


@dataclass(frozen=True, slots=True)
class Contact:
    """How to reach an owner."""

    type: str
    value: str
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who answers for the service."""

    team: str = ""
    dri: str = ""
    contacts: tuple[Contact, ...] = ()

    @property
    def display(self) -> str:
        """One name for a person: the team, else the responsible individual."""
        return self.team or self.dri


@dataclass(frozen=True, slots=True)
class Claim:
    """One readiness claim; weight in points."""

    id: str
    type: str
    status: str
    evidence: str
    weight: int
    category: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Revision:
    """One line of the readiness history."""

    date: str
    version: str
    author: str
    description: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Claims that the service is fit for production; `expires` is YYYY-MM-DD."""

    expires: str
    claims: tuple[Claim, ...]
    min_score: int = 100
    partial_credit: float = 0.5
    history: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True)
class Contract:
    """A whole contract; an empty `workload` means none is declared."""

    service: str
    version: str
    owner: Owner = field(default_factory=Owner)
    interfaces: tuple[Interface, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    policies: tuple[Policy, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    state: State | None = None
    workload: str = ""
    readiness: Readiness | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
