# SPDX-License-Identifier: MIT
"""Prometheus metrics in their text form; series of a Pacto go with the Pacto."""

from __future__ import annotations

import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_pacto.engine.ladder import ContractStatus
from kubectl_pacto.kube.reflector import Key

Labels = tuple[tuple[str, str], ...]
Samples = Iterable[tuple[Labels, float]]
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LEVELS: Final = ("complete", "partial", "failed", "stale")
READINESS: Final = {
    "done": "doneCount", "partial": "partialCount", "not-done": "notDoneCount", "deferred": "deferredCount"
}  # fmt: skip
READ: Final = ("expired", "passing", "score", *READINESS.values())
HELP: Final = {
    "pacto_contract_status": ("gauge", "1 for the contract status of a Pacto, 0 for the others."),
    "pacto_readiness_score": ("gauge", "The readiness score, 0 to 100."),
    "pacto_readiness_gate": ("gauge", "1 while the readiness gate is met."),
    "pacto_readiness_status": ("gauge", "1 for the status of the readiness gate, 0 for the others."),
    "pacto_readiness_checks": ("gauge", "Readiness claims by their status."),
    "pacto_kernel_coverage_pods": ("gauge", "Pods of a target by how well the kernel covers them."),
    "pacto_check_duration_seconds": ("histogram", "How long a check took, without writing its status."),
    "pacto_checks_total": ("counter", "Checks by their result."),
    "pacto_queue_depth": ("gauge", "Pactos that are due and wait for a worker."),
    "pacto_watch_age_seconds": ("gauge", "Seconds since the last sign of life of a watch."),
    "pacto_leader": ("gauge", "1 while this process leads."),
}


class _Told(NamedTuple):
    """What the series of one Pacto are made of, when they are asked for: two dozen for each would be dear."""

    contract: str
    kernel: tuple[int, ...]
    readiness: Mapping[str, Any] | None


class Metrics:
    """All series of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pactos: dict[Key, _Told] = {}
        self._checks: dict[str, int] = {}
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0
        self._live: dict[str, Callable[[], Samples]] = {}

    def live(self, name: str, read: Callable[[], Samples]) -> None:
        """A metric that is read when it is asked for."""
        self._live[name] = read

    def checked(self, seconds: float, result: str) -> None:
        """A check came to an end: ok, conflict, or error."""
        with self._lock:
            self._checks[result] = self._checks.get(result, 0) + 1
            self._buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds

    def pacto(self, key: Key, status: Mapping[str, Any]) -> None:
        """The series of one Pacto, from its status."""
        kernel, readiness = status.get("kernelEvidence"), status.get("readiness")
        found = _Told(
            sys.intern(str(status.get("contractStatus"))),
            tuple(kernel.get(level, 0) for level in LEVELS) if kernel else (),
            {name: readiness.get(name) for name in READ} if readiness else None,
        )
        with self._lock:
            self._pactos[key] = found

    def forget(self, key: Key) -> None:
        """A Pacto that is gone has no series."""
        with self._lock:
            self._pactos.pop(key, None)

    def text(self) -> str:
        """Everything, in the text exposition format."""
        with self._lock:
            series: dict[str, list[tuple[Labels, float]]] = {}
            for key, told in self._pactos.items():
                for name, labels, value in _samples(key, told):
                    series.setdefault(name, []).append((labels, value))
            series["pacto_checks_total"] = [
                ((("result", result),), float(count)) for result, count in sorted(self._checks.items())
            ]
            histogram = self._histogram()
        for name, read in self._live.items():
            series[name] = list(read())
        lines = []
        for name, (kind, words) in HELP.items():
            if series.get(name) or kind == "histogram":
                lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
                lines += histogram if kind == "histogram" else []
                lines += [f"{name}{_labels(who)} {_number(value)}" for who, value in series.get(name, ())]
        return "\n".join([*lines, ""])

    def _histogram(self) -> list[str]:
        name, total, lines = "pacto_check_duration_seconds", 0, []
        for bound, count in zip((*(f"{one:g}" for one in BUCKETS), "+Inf"), self._buckets, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {_number(self._seconds)}", f"{name}_count {total}"]


def _samples(key: Key, told: _Told) -> list[tuple[str, Labels, float]]:
    who: Labels = (("name", key[1]), ("namespace", key[0]))
    found = [
        ("pacto_contract_status", (*who, ("status", one.value)), float(one.value == told.contract))
        for one in ContractStatus
    ]
    found += [
        ("pacto_kernel_coverage_pods", (*who, ("level", level)), float(count))
        for level, count in zip(LEVELS, told.kernel, strict=False)
    ]
    return found + ([] if told.readiness is None else _readiness(who, told.readiness))


def _readiness(who: Labels, readiness: Mapping[str, Any]) -> list[tuple[str, Labels, float]]:
    now = "Expired" if readiness["expired"] else "Satisfied" if readiness["passing"] else "BelowMinScore"
    return [
        ("pacto_readiness_score", who, float(readiness["score"] or 0)),
        ("pacto_readiness_gate", who, float(now == "Satisfied")),
        *(
            ("pacto_readiness_status", (*who, ("status", one)), float(one == now))
            for one in ("Satisfied", "BelowMinScore", "Expired")
        ),
        *(
            ("pacto_readiness_checks", (*who, ("status", one)), float(readiness[field] or 0))
            for one, field in READINESS.items()
        ),
    ]


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels) + "}"


def _number(value: float) -> str:
    """Every digit: a counter that is rounded seems to stand still."""
    return str(int(value)) if value.is_integer() else repr(value)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
