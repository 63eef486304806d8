# SPDX-License-Identifier: MIT
"""Option types and gates that several commands share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click

from kubectl_pacto.model.duration import parse_duration
from kubectl_pacto.model.instant import parse_instant

if TYPE_CHECKING:
    from kubectl_pacto.engine.ladder import ContractStatus, Summary


class Duration(click.ParamType[float]):
    """A duration such as 90s, 2m or 1h30m, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds, or a usage error that shows the form."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class InstantType(click.ParamType[float]):
    """An RFC 3339 time, in POSIX seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """POSIX seconds, or a usage error that shows the form."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_instant(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Code(click.ParamType[str]):
    """The code of a finding, in any case and with - or _ between its words."""

    name = "code"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The code as it is registered, or a usage error that names the nearest ones."""
        from kubectl_pacto.model.finding import REGISTRY

        code = str(value).upper().replace("-", "_")
        if code not in REGISTRY:
            meant = did_you_mean(code, {one: one for one in REGISTRY}, cutoff=0.5)
            said = f"no finding is called {value}{meant} (`kubectl pacto explain` lists them)"
            self.fail(said, param, ctx)
        return code


def did_you_mean(given: str, known: Mapping[str, str], *, cutoff: float) -> str:
    """The nearest of what is known, as a clause; `known` has how each is compared, and how it is spelled."""
    near = difflib.get_close_matches(given, known, n=3, cutoff=cutoff)
    return f"; did you mean {', '.join(known[one] for one in near)}?" if near else ""


class FailOn(StrEnum):
    """From which findings on a command exits with 3; each includes those before it."""

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"
    NEVER = "never"


def trips(gate: FailOn, results: Iterable[tuple[ContractStatus, Summary]]) -> bool:
    """Whether any of these results is one that the gate stops."""
    from kubectl_pacto.engine.ladder import ContractStatus

    for status, summary in results:
        found = [gate is not FailOn.NEVER and (summary.errors > 0 or status is ContractStatus.INVALID)]
        if gate in (FailOn.WARNING, FailOn.UNKNOWN):
            found.append(summary.warnings > 0)
        if gate is FailOn.UNKNOWN:
            found.append(summary.unknowns > 0 or status is ContractStatus.UNKNOWN)
        if any(found):
            return True
    return False
