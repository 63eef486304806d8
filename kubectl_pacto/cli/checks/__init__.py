# SPDX-License-Identifier: MIT
"""What `check` looks at, in groups; each check has a stable id and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.connect import Session


class Result(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One answer: `id` never changes its meaning, `what` is a sentence, `hint` the next command."""

    id: str
    result: Result
    what: str
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is checked: one session, and where the parts are or will be."""

    session: Session
    namespace: str
    agent_namespace: str
    wants_agent: bool = True


Group = tuple[str, str, Callable[[Scope], Iterable[Check]]]


def run_groups(groups: Iterable[Group], scope: Scope) -> Iterator[tuple[str, list[Check]]]:
    """Run all groups; one that breaks is a failed check, and the next goes on."""
    for name, failure_id, run in groups:
        done: list[Check] = []
        try:
            done.extend(run(scope))
        except PactoError as error:
            done.append(Check(failure_id, Result.FAILED, f"{name} can be checked", str(error)))
        yield name, done


def worst(checks: Iterable[Check]) -> Result:
    """The worst result; skipped counts as ok."""
    results = {check.result for check in checks}
    return next((one for one in (Result.FAILED, Result.WARNING) if one in results), Result.OK)
