# SPDX-License-Identifier: MIT
"""What kind of workload runs, and where it keeps its state. The Kubernetes API alone."""

from __future__ import annotations

from kubectl_pacto.model.evidence import Kind, Observation, Outcome
from kubectl_pacto.model.kube import Unreadable, Volume, Workload
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.pods import target_workload

_TYPES = {"Job": "job", "CronJob": "scheduled"}
EPHEMERAL = frozenset({"emptyDir", "projected", "configMap", "secret", "downwardAPI"})
CLAIM = "persistentVolumeClaim"


def observe_workload(snapshot: Snapshot) -> list[Observation]:
    """The type of the target's workload, if the contract declares one."""
    contract, pacto, kind = snapshot.contract, snapshot.pacto, Kind.WORKLOAD
    workload = target_workload(snapshot) if contract.workload else None
    if workload is None:
        return []
    if isinstance(workload, Unreadable):
        return [_not_read(snapshot, kind, workload)]
    found = _TYPES.get(workload.kind, "service")
    what = f"{workload.kind} {workload.name}"
    if found != contract.workload and not pacto.workload_explicit:
        # a name that only happens to be the Service's may be another workload's
        why = f"{what} is of type {found}, but the target does not name its workload with name and kind"
        return [Observation(kind, contract.service, Outcome.INSUFFICIENT, snapshot.at, why=why)]
    return [Observation(kind, contract.service, Outcome.OBSERVED, snapshot.at, {"type": found}, why=what)]


def _not_read(snapshot: Snapshot, kind: Kind, failure: Unreadable) -> Observation:
    why = f"cannot read the workload: {failure.why}"
    return Observation(kind, snapshot.contract.service, Outcome.FAILED, snapshot.at, why=why)


def observe_persistence(snapshot: Snapshot) -> list[Observation]:
    """Whether what the workload mounts is durable, if the contract says its state is; and its scope."""
    contract, kind = snapshot.contract, Kind.PERSISTENCE
    if contract.state is None or contract.state.durability != "persistent":
        return []
    workload = target_workload(snapshot)
    if workload is None:
        return []
    if isinstance(workload, Unreadable):
        return [_not_read(snapshot, kind, workload)]
    durable, why = find_durability(workload)
    if durable is None:
        return [Observation(kind, contract.service, Outcome.INSUFFICIENT, snapshot.at, why=why)]
    value = {"durable": durable}
    found = Observation(kind, contract.service, Outcome.OBSERVED, snapshot.at, value, why=why)
    return [found, _observe_scope(snapshot, workload)]


def find_durability(workload: Workload) -> tuple[bool | None, str]:
    """Whether a pod template keeps state durably (None: cannot be told), and why."""
    what = f"{workload.kind} {workload.name}"
    if workload.claim_templates:
        return True, f"{what} has volume claim templates"
    claim = next((item for item in workload.volumes if item.source == CLAIM), None)
    if claim is not None:
        return True, f"{what} has the volume claim {claim.claim or claim.name}"
    other = next((item for item in workload.volumes if item.source not in EPHEMERAL), None)
    if other is not None:
        volume = f"volume {other.name} of {what}"
        return None, f"{volume} is of type {other.source}, which may or may not be durable"
    return False, f"{what} has no volume that outlives its pods"


def _observe_scope(snapshot: Snapshot, workload: Workload) -> Observation:
    scope, why = find_scope(workload)
    kind, subject = Kind.PERSISTENCE_SCOPE, snapshot.contract.service
    if not scope:
        return Observation(kind, subject, Outcome.INSUFFICIENT, snapshot.at, why=why)
    return Observation(kind, subject, Outcome.OBSERVED, snapshot.at, {"scope": scope}, why=why)


def find_scope(workload: Workload) -> tuple[str, str]:
    """`shared` or `local` (empty: cannot be told), and why.

    A claim of the pod template is shared when the spec lets more than one pod run at once; claim
    templates give each replica its own.
    """
    what = f"{workload.kind} {workload.name}"
    templates = set(workload.claim_templates)
    writable = [
        item
        for item in workload.volumes
        if item.source == CLAIM and item.name not in templates and _is_writable(item, workload)
    ]
    if writable and workload.kind == "CronJob":
        return "", f"runs of {what} may overlap or not"
    if writable and workload.parallel > 1:
        return "shared", f"up to {workload.parallel} pods of {what} write claim {writable[0].claim} at once"
    if writable or templates:
        return "local", f"each pod of {what} has its volume claim to itself"
    return "", f"{what} writes no volume claim"


def _is_writable(volume: Volume, workload: Workload) -> bool:
    """Whether any container may write the volume: not opened, nor mounted everywhere, read-only."""
    if volume.read_only:
        return False
    mounts = [
        read_only
        for container in (*workload.containers, *workload.init_containers)
        for name, read_only in container.mounts
        if name == volume.name
    ]
    return not mounts or not all(mounts)
