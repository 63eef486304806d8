# SPDX-License-Identifier: MIT
"""The tables: sentences of the specification in our words, and the scenarios that execute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent
TIMEOUT: Final = 180.0


@dataclass(frozen=True)
class Expected:
    """What a Pacto's status must say; what is None is not looked at.

    `findings` are all of them, each `CODE severity collector subject`, cut short where the rest does not
    matter. `evidence` is what `evaluate --evidence` says of the same objects: `subject outcome collector`.
    """

    status: str
    findings: tuple[str, ...] | None = None
    says: str = ""
    unverified: tuple[str, ...] | None = None
    kernel: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A cause, and what the Pactos of the scenario must come to say because of it.

    `never` are codes that no status may have had since the cause, not even for a moment. With `hold` the
    stabilization window must pass and another check must say the same.
    """

    cause: str
    expect: Mapping[str, Expected]
    do: tuple[Mapping[str, Any], ...] = ()
    never: tuple[str, ...] = ()
    hold: bool = False
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class Scenario:
    """One namespace with applications, and the steps that are taken there.

    `phase` is `api` before any agent is installed, `off` after they were turned off, else `kernel`. `wave`
    orders the starts: long ones first. A scenario that `continues` another finds what that one `keeps`.
    """

    id: str
    proves: tuple[str, ...]
    apps: Mapping[str, Mapping[str, Any]]
    steps: tuple[Step, ...]
    phase: str = "kernel"
    wave: int = 1
    continues: str = ""
    keeps: bool = False


def sentences() -> dict[str, tuple[str, str]]:
    """Each sentence by its name: section and words."""
    sections = yaml.safe_load((HERE / "sentences.yaml").read_text())
    del sections["elsewhere"]
    return {name: (section, text) for section, named in sections.items() for name, text in named.items()}


def elsewhere() -> dict[str, dict[str, str]]:
    """The sentences that another test proves: which, and why not a scenario."""
    found: dict[str, dict[str, str]] = yaml.safe_load((HERE / "sentences.yaml").read_text())["elsewhere"]
    return found


def scenarios() -> list[Scenario]:
    """All scenarios of all files, in the order of the files' names."""
    found = []
    for path in sorted((HERE / "scenarios").glob("*.yaml")):
        found += [_scenario(raw) for raw in yaml.safe_load(path.read_text())]
    return found


def _known(kind: type, raw: Mapping[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    if unknown := set(raw) - names:
        raise ValueError(f"{kind.__name__} {raw.get('id', '')}: no field {', '.join(sorted(unknown))}")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}


def _scenario(raw: Mapping[str, Any]) -> Scenario:
    made = _known(Scenario, raw)
    made["apps"] = {name: app or {} for name, app in raw["apps"].items()}
    made["steps"] = tuple(_step(one) for one in raw["steps"])
    return Scenario(**made)


def _step(raw: Mapping[str, Any]) -> Step:
    made = _known(Step, raw)
    made["expect"] = {name: Expected(**_known(Expected, one)) for name, one in raw["expect"].items()}
    return Step(**made)
