# SPDX-License-Identifier: MIT
"""The three conditions of a Pacto; a transition time is kept while a condition's status stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_pacto.conformance.declared import day_of
from kubectl_pacto.conformance.source import Loaded
from kubectl_pacto.engine.readiness import score_readiness
from kubectl_pacto.model.contract import Readiness
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Snapshot
from kubectl_pacto.observe.pods import target_workload

READ = "the target's objects were read"
ORDER = ("ContractValid", "RuntimeObserved", "ReadinessSatisfied")


def build_conditions(
    pacto: Pacto, loaded: Loaded, snapshot: Snapshot | None, at: float
) -> list[dict[str, Any]]:
    """The conditions after a check; one that this check says nothing about stays as it was."""
    found = {kind: dict(condition) for kind, condition in _prior(pacto).items()}
    fresh = [_contract_valid(pacto, loaded)]
    if snapshot is not None:
        fresh.append(_runtime_observed(snapshot))
    contract = loaded.validated.contract
    if contract is not None and contract.readiness is not None:
        fresh.append(_readiness(contract.readiness, at))
    elif contract is not None:
        found.pop("ReadinessSatisfied", None)  # a contract that no longer declares any
    for condition in fresh:
        kind = condition["type"]
        before = found.get(kind, {})
        is_same = before.get("status") == condition["status"]
        condition["lastTransitionTime"] = (
            before["lastTransitionTime"]
            if is_same and before.get("lastTransitionTime")
            else format_instant(at)
        )
        if pacto.generation:
            condition["observedGeneration"] = pacto.generation
        found[kind] = condition
    return [found[kind] for kind in sorted(found, key=_place)]


def _place(kind: str) -> tuple[int, str]:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)


def _prior(pacto: Pacto) -> dict[str, Mapping[str, Any]]:
    raw = pacto.status.get("conditions")
    conditions = raw if isinstance(raw, list) else []
    return {
        item["type"]: item
        for item in conditions
        if isinstance(item, dict) and isinstance(item.get("type"), str)
    }


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    """One condition, its times not yet set."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _contract_valid(pacto: Pacto, loaded: Loaded) -> dict[str, Any]:
    if loaded.unavailable:
        return condition("ContractValid", "Unknown", "Unavailable", loaded.unavailable)
    validated = loaded.validated
    if validated.errors or validated.contract is None:
        message = "; ".join(": ".join(filter(None, (item.path, item.message))) for item in validated.errors)
        return condition("ContractValid", "False", "Invalid", message)
    if pacto.is_reference:
        return condition(
            "ContractValid", "True", "ReferenceOnly", "the contract is valid; no target is given"
        )
    return condition("ContractValid", "True", "Parsed", "the contract is valid")


def _runtime_observed(snapshot: Snapshot) -> dict[str, Any]:
    pacto, cluster = snapshot.pacto, snapshot.cluster
    failures = [
        failure.why
        for failure in (
            cluster.failure("Service", pacto.namespace, pacto.service) if pacto.service else None,
            cluster.failure(pacto.workload_kind, pacto.namespace, pacto.workload_name),
        )
        if failure is not None
    ]
    if failures:
        return condition("RuntimeObserved", "False", "ObservationFailed", "; ".join(failures))
    absent = _absent(snapshot)
    message = f"{READ}; there is no {' and no '.join(absent)}" if absent else READ
    return condition("RuntimeObserved", "True", "Found", message)


def _absent(snapshot: Snapshot) -> list[str]:
    """What of the target does not exist: without its workload no pod's connections are read."""
    pacto, cluster = snapshot.pacto, snapshot.cluster
    found = {
        f"Service {pacto.namespace}/{pacto.service}": pacto.service
        and cluster.service(pacto.namespace, pacto.service) is None,
        f"{pacto.workload_kind} {pacto.namespace}/{pacto.workload_name}": pacto.workload_name
        and target_workload(snapshot) is None,
    }
    return [what for what, is_absent in found.items() if is_absent]


def _readiness(readiness: Readiness, at: float) -> dict[str, Any]:
    score = score_readiness(readiness, day_of(at))
    message = f"score {score.score} of at least {readiness.min_score}, valid until {readiness.expires}"
    if score.expired:
        return condition("ReadinessSatisfied", "False", "Expired", message)
    if not score.passing:
        return condition("ReadinessSatisfied", "False", "BelowMinScore", message)
    return condition("ReadinessSatisfied", "True", "Satisfied", message)
