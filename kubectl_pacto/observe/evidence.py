# SPDX-License-Identifier: MIT
"""All observations about one target in one pass: a snapshot in, evidence and open windows out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kubectl_pacto.model.bounds import CLOCK_SKEW_WARNING_SECONDS
from kubectl_pacto.model.evidence import EvidenceSet, Kind, Observation, Outcome, Value
from kubectl_pacto.model.kube import Service
from kubectl_pacto.model.pacto import Windows
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.capability import read_health, read_metrics
from kubectl_pacto.observe.configuration import read_configuration
from kubectl_pacto.observe.coverage import Level, cover, in_mesh
from kubectl_pacto.observe.dependency import read_dependency
from kubectl_pacto.observe.interface import read_interface
from kubectl_pacto.observe.peers import Callers, find_callers
from kubectl_pacto.observe.pods import running_pods
from kubectl_pacto.observe.reading import Reading, Settled, settle
from kubectl_pacto.observe.refine import observe_exposure, observe_protocol, observe_version
from kubectl_pacto.observe.resolve import Resolution, resolve
from kubectl_pacto.observe.undeclared import find_undeclared
from kubectl_pacto.observe.workload import observe_persistence, observe_workload


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """How many of the target's pods are covered how well, and why not better."""

    levels: Mapping[Level, int]
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Observed:
    """One pass. `next_check` is when a look sooner than the interval pays, POSIX seconds."""

    evidence: EvidenceSet
    windows: Windows
    kernel: KernelSummary | None = None
    next_check: float | None = None


@dataclass(slots=True)
class _Pass:
    """What a pass has gathered so far."""

    snapshot: Snapshot
    observations: list[Observation] = field(default_factory=list)
    windows: dict[tuple[str, str], float] = field(default_factory=dict)
    young: float | None = None

    def settle(self, kind: str, subject: str, reading: Reading) -> Settled:
        """Apply the window; any outcome but a negative removes it."""
        settled = settle(
            reading,
            prior=self.snapshot.pacto.windows.get((kind, subject)),
            at=self.snapshot.at,
            window=self.snapshot.options.window,
        )
        if settled.window is not None:
            self.windows[kind, subject] = settled.window
        if reading.young is not None:
            self.young = max(reading.young, self.young or 0.0)
        return settled

    def keep(self, kind: str, subject: str) -> None:
        """Let an open window survive a look that said nothing either way."""
        prior = self.snapshot.pacto.windows.get((kind, subject))
        if prior is not None:
            self.windows[kind, subject] = prior

    def add(
        self, kind: Kind, subject: str, settled: Settled, value: Value, collector: str | None = None
    ) -> None:
        """Record an observation; its value counts only if it was Observed."""
        self.observations.append(
            Observation(
                kind=kind,
                subject=subject,
                outcome=settled.outcome,
                detected_at=self.snapshot.at,
                value=value if settled.outcome is Outcome.OBSERVED else None,
                collector=settled.collector if collector is None else collector,
                why=settled.why,
            )
        )


def observe(snapshot: Snapshot) -> Observed:
    """Everything that can be observed about the target of a snapshot."""
    work = _Pass(snapshot)
    callers = find_callers(snapshot)
    _observe_interfaces(work)
    _observe_dependencies(work, callers)
    _observe_capabilities(work)
    _observe_configurations(work)
    work.observations += observe_workload(snapshot)
    work.observations += observe_persistence(snapshot)
    pacto = snapshot.pacto
    evidence = EvidenceSet(
        subject=f"{pacto.namespace}/{pacto.service or pacto.workload_name}",
        contract_ref=pacto.oci,
        observed_at=snapshot.at,
        observations=tuple(work.observations),
    )
    return Observed(evidence, work.windows, _summarize(snapshot), _next_check(work))


def _observe_interfaces(work: _Pass) -> None:
    for item in work.snapshot.contract.interfaces:
        reading = read_interface(work.snapshot, item.name)
        if reading is None:
            continue
        settled = work.settle("interface", item.name, reading)
        value: Value = {"type": item.type.value, "present": settled.positive}
        work.add(Kind.INTERFACE, item.name, settled, value)
        if settled.outcome is Outcome.OBSERVED and settled.positive:
            work.observations += observe_protocol(work.snapshot, item)
            work.observations += observe_exposure(work.snapshot, item)


def _observe_dependencies(work: _Pass, callers: Callers) -> None:
    resolutions: list[Resolution] = []
    for item in work.snapshot.contract.dependencies:
        resolution = resolve(work.snapshot.cluster, item)
        resolutions.append(resolution)
        reading = read_dependency(work.snapshot, resolution, callers)
        settled = work.settle("dependency", item.name, reading)
        work.add(Kind.DEPENDENCY, item.name, settled, {"reachable": settled.positive})
        if settled.outcome is Outcome.OBSERVED and resolution.provider is not None:
            work.observations += observe_version(work.snapshot, item, resolution.provider)
    work.observations += find_undeclared(work.snapshot, resolutions, callers)


def _observe_capabilities(work: _Pass) -> None:
    readers = {"health": read_health, "metrics": read_metrics}
    for item in work.snapshot.contract.capabilities:
        reader = readers.get(item.type)
        if reader is None:
            continue
        found = reader(work.snapshot, item)
        if found.keeps_window:
            work.keep("capability", item.key)
            settled = settle(found.reading, prior=None, at=work.snapshot.at, window=0)
        else:
            settled = work.settle("capability", item.key, found.reading)
        work.add(Kind.CAPABILITY, item.key, settled, {"present": settled.positive}, found.collector)


def _observe_configurations(work: _Pass) -> None:
    for item in work.snapshot.contract.configurations:
        found = read_configuration(work.snapshot, item)
        if found is None:
            continue
        if found.keeps_window:
            work.keep("configuration", item.name)
            settled = settle(found.reading, prior=None, at=work.snapshot.at, window=0)
        else:
            settled = work.settle("configuration", item.name, found.reading)
        value: Value = {"present": settled.positive, "conformant": found.conformant}
        work.add(Kind.CONFIGURATION, item.name, settled, value)


def _summarize(snapshot: Snapshot) -> KernelSummary | None:
    if not snapshot.options.kernel.enabled:
        return None
    pods = {pod.uid or pod.name: pod for pod in running_pods(snapshot)}
    service = snapshot.cluster.service(snapshot.pacto.namespace, snapshot.pacto.service)
    if isinstance(service, Service) and service.selector:
        for pod in snapshot.cluster.pods_selected(service.namespace, service.selector):
            if pod.running:
                pods[pod.uid or pod.name] = pod
    levels: Counter[Level] = Counter()
    reasons: Counter[str] = Counter()
    for pod in pods.values():
        coverage = cover(snapshot, pod)
        levels[coverage.level] += 1
        reasons.update(coverage.reasons)
        if in_mesh(snapshot, pod):
            reasons["Mesh"] += 1
        if abs(coverage.offset) > CLOCK_SKEW_WARNING_SECONDS:
            reasons["ClockSkew"] += 1
    return KernelSummary(dict(levels), dict(sorted(reasons.items())))


def _next_check(work: _Pass) -> float | None:
    """The end of the first open window, or one publish interval on while a pod is just too young."""
    at, window = work.snapshot.at, work.snapshot.options.window
    times = [start + window for start in work.windows.values() if start + window > at]
    if work.young is not None:
        times.append(at + work.young)
    return min(times, default=None)
