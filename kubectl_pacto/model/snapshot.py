# SPDX-License-Identifier: MIT
"""All that one check of one Pacto looks at: objects, clock, options and what is known of heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubectl_pacto.model.bounds import STABILIZATION_SECONDS
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.node import AGENT_NAMESPACE
from kubectl_pacto.model.pacto import Pacto

HOST_KERNEL_RUNTIMES = ("runc", "crun", "nvidia")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What the checking process itself saw of a node's heartbeat.

    `seen_at` is when it came, by the checking clock; `renewed` whether this process saw one renewal;
    `offset` seconds to add to the node's times to get the checking clock's.
    """

    seen_at: float
    renewed: bool = True
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How kernel evidence is read. `heartbeats` None: from Leases alone, as an offline check does.

    `staleness` and `recency` in seconds, None for what the agent's Lease says. `watch_alive` is
    False while the checker's own watch shows no sign of life.
    """

    enabled: bool = False
    namespace: str = AGENT_NAMESPACE
    staleness: float | None = None
    recency: float | None = None
    host_kernel_runtimes: tuple[str, ...] = HOST_KERNEL_RUNTIMES
    mesh_proxies: tuple[str, ...] = ()
    heartbeats: Mapping[str, Heartbeat] | None = None
    watch_alive: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """How a check judges; `window` is the stabilization window in seconds."""

    window: float = STABILIZATION_SECONDS
    match_interfaces_by_name: bool = False
    observe_metrics: bool = False
    kernel: KernelOptions = field(default_factory=KernelOptions)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One check: `at` is its clock in POSIX seconds; `files` the contract bundle's, None without one."""

    at: float
    pacto: Pacto
    contract: Contract
    cluster: Cluster
    options: Options = field(default_factory=Options)
    files: Mapping[str, bytes] | None = None
