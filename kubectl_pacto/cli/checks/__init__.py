# SPDX-License-Identifier: MIT
"""What `check` looks at, in groups; each check has a stable id and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.connect import Session
from kubectl_pacto.kube.connect_errors import CredentialProblem, PluginFailed, PluginMissing
from kubectl_pacto.kube.errors import ApiUnauthorized, ApiUnreachable

REST: Final = "rest"
FOR_ALL: Final = (ApiUnreachable, ApiUnauthorized, CredentialProblem, PluginFailed, PluginMissing)


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


def run_groups(groups: Sequence[Group], scope: Scope) -> Iterator[tuple[str, list[Check]]]:
    """Run all groups; one that breaks is a failed check, and the next goes on.

    Not after a failure that every other would only meet again: what is left is one skipped check then.
    """
    for position, (name, failure_id, run) in enumerate(groups, start=1):
        done: list[Check] = []
        try:
            done.extend(run(scope))
        except PactoError as error:
            done.append(Check(failure_id, Result.FAILED, f"{name} can be checked", str(error)))
            left = ", ".join(later for later, _, _ in groups[position:])
            if left and isinstance(error, FOR_ALL):
                done.append(Check(REST, Result.SKIPPED, f"not checked: {left}"))
                yield name, done
                return
        yield name, done


def worst(checks: Iterable[Check]) -> Result:
    """The worst result; skipped counts as ok."""
    results = {check.result for check in checks}
    return next((one for one in (Result.FAILED, Result.WARNING) if one in results), Result.OK)
