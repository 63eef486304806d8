# SPDX-License-Identifier: MIT
"""Server-side apply of a release's objects, and their removal; each step says what it did.

The field manager is the plugin: an apply that changes nothing leaves the object's version as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubectl_pacto.cli.errors import FieldsInConflict
from kubectl_pacto.cli.install.objects import path_of, title_of
from kubectl_pacto.cli.install.ownership import MANAGER
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiConflict, ApiNotFound
from kubectl_pacto.kube.lists import with_query

Raw = Mapping[str, Any]
Say = Callable[[str], None]
# what the server or a controller writes beside what was applied
_VOLATILE: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")
# a Deployment's controller numbers it whenever it comes to it
_NUMBER: Final = "deployment.kubernetes.io/revision"


class Outcome(StrEnum):
    """What became of an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class How:
    """How to apply: for real or as a dry run of the server's, and whether conflicts are taken over."""

    dry_run: bool = False
    force: bool = False

    @property
    def suffix(self) -> str:
        """What follows an outcome, as kubectl says it."""
        return " (server dry run)" if self.dry_run else ""


def apply_all(
    client: Client, objects: Iterable[Raw], current: Mapping[str, Raw], how: How, say: Say
) -> list[Outcome]:
    """Apply objects in their order. Raises FieldsInConflict, ApiError."""
    outcomes = []
    for raw in objects:
        outcome = _apply(client, raw, current.get(path_of(raw)), how)
        say(f"{title_of(raw)} {outcome.value}{how.suffix}")
        outcomes.append(outcome)
    return outcomes


def _apply(client: Client, raw: Raw, before: Raw | None, how: How) -> Outcome:
    path = with_query(
        path_of(raw),
        fieldManager=MANAGER,
        force="true" if how.force else "",
        dryRun="All" if how.dry_run else "",
    )
    try:
        after = client.apply(path, raw)
    except ApiConflict as error:
        raise FieldsInConflict(object=title_of(raw), problem=error.facts["problem"]) from None
    except ApiNotFound:
        # a dry run has made no namespace for what lies in it
        if how.dry_run and before is None:
            return Outcome.CREATED
        raise
    if before is None:
        return Outcome.CREATED
    return Outcome.UNCHANGED if visible(before) == visible(after) else Outcome.CONFIGURED


def visible(raw: Raw) -> dict[str, Any]:
    """An object without what changes by itself."""
    metadata = {key: value for key, value in raw["metadata"].items() if key not in _VOLATILE}
    notes = metadata.get("annotations") or {}
    metadata["annotations"] = {key: value for key, value in notes.items() if key != _NUMBER}
    return {key: value for key, value in raw.items() if key != "status"} | {"metadata": metadata}


def diff(objects: Iterable[Raw], current: Mapping[str, Raw]) -> str:
    """How the objects differ from what is there, field by field that we set, as a unified diff."""
    import difflib

    lines: list[str] = []
    for raw in objects:
        before = current.get(path_of(raw))
        old = _text(common(before, raw)) if before else []
        lines += difflib.unified_diff(old, _text(raw), f"a/{title_of(raw)}", f"b/{title_of(raw)}")
    return "".join(lines)


def _text(raw: Any) -> list[str]:
    from kubectl_pacto.cli.render.plain_yaml import dump

    return dump(raw, sort=True).splitlines(keepends=True)


def common(before: Any, wanted: Any) -> Any:
    """The part of what is there that `wanted` speaks of, so that defaults of the server are no change."""
    if isinstance(before, dict) and isinstance(wanted, dict):
        return {key: common(before[key], value) for key, value in wanted.items() if key in before}
    if isinstance(before, list) and isinstance(wanted, list) and len(before) == len(wanted):
        return [common(one, other) for one, other in zip(before, wanted, strict=True)]
    return before


def foresee(
    objects: Iterable[Raw], current: Mapping[str, Raw], leaving: Iterable[Raw]
) -> Iterator[tuple[str, Outcome]]:
    """What would become of each object, as far as what is there tells without asking the server again."""
    for raw in objects:
        before = current.get(path_of(raw))
        if before is None:
            yield title_of(raw), Outcome.CREATED
        else:
            yield title_of(raw), Outcome.UNCHANGED if common(before, raw) == raw else Outcome.CONFIGURED
    for raw in reversed(list(leaving)):
        yield title_of(raw), Outcome.DELETED


def delete_all(client: Client, objects: Iterable[Raw], *, dry_run: bool, say: Say) -> list[Outcome]:
    """Delete objects in the opposite order; what is gone already is no error. Raises ApiError."""
    outcomes = []
    for raw in reversed(list(objects)):
        path = with_query(path_of(raw), dryRun="All" if dry_run else "", propagationPolicy="Background")
        try:
            client.delete(path)
        except ApiNotFound:
            continue
        say(f"{title_of(raw)} deleted{' (server dry run)' if dry_run else ''}")
        outcomes.append(Outcome.DELETED)
    return outcomes
