# SPDX-License-Identifier: MIT
"""One release from values to a running operator: the steps of install, upgrade and uninstall."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubectl_pacto import __version__
from kubectl_pacto.cli.errors import NothingInstalled, WouldDowngrade
from kubectl_pacto.cli.install.apply import How, Outcome, apply_all, delete_all
from kubectl_pacto.cli.install.objects import merge, path_of, release_objects
from kubectl_pacto.cli.install.ownership import read_current, require_ours
from kubectl_pacto.cli.install.record import Record, identity, read_record
from kubectl_pacto.cli.install.wait import wait_gone, wait_ready
from kubectl_pacto.kube.client import Client

Raw = Mapping[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be there, what there is now of it, and what goes because it is no longer part of it."""

    namespace: str
    values: dict[str, Any]
    objects: Sequence[dict[str, Any]]
    current: Mapping[str, dict[str, Any]]
    leaving: Sequence[Raw] = ()
    before: Record | None = None


def plan(client: Client, namespace: str, given: Raw, *, reset: bool, take_ownership: bool) -> Plan:
    """Work out a release. Raises HelmOwns, AnotherOwns, UsageError, ApiError."""
    before = read_record(client, namespace)
    kept = before.values if before and not reset else {}
    values = merge(kept, given)
    objects = release_objects(values, namespace)
    current = read_current(client, objects)
    require_ours(current.values(), take_ownership=take_ownership)
    paths = {path_of(raw) for raw in objects}
    leaving = [raw for raw in (before.objects if before else ()) if path_of(raw) not in paths]
    return Plan(namespace, values, objects, current, _deletable(leaving, before), before)


def _deletable(objects: Sequence[Raw], record: Record | None, *, crds: bool = False) -> list[Raw]:
    """Without namespaces that were there before us, and without CRDs unless asked for."""
    found = record.found if record else frozenset()
    return [
        raw
        for raw in objects
        if not (raw["kind"] == "Namespace" and path_of(raw) in found)
        and (crds or raw["kind"] != "CustomResourceDefinition")
    ]


def require_newer(made: Plan, *, allowed: bool) -> None:
    """Raises WouldDowngrade where an older plugin meets a newer release."""
    installed = made.before.version if made.before else __version__
    if _parts(installed) > _parts(__version__) and not allowed:
        raise WouldDowngrade(installed=installed, ours=__version__)


def _parts(version: str) -> tuple[int, ...]:
    head = version.partition(".dev")[0].partition("rc")[0]
    return tuple(int(part) for part in head.split(".") if part.isdigit())


def carry_out(client: Client, made: Plan, how: How, say: Say, *, timeout: float | None) -> list[Outcome]:
    """Apply a plan, keep the record, remove what leaves; wait unless `timeout` is None."""
    crds = [raw for raw in made.objects if raw["kind"] == "CustomResourceDefinition"]
    outcomes = apply_all(client, crds, made.current, how, say)
    if not how.dry_run:
        wait_ready(client, crds, timeout or 30.0, say)
    rest = [raw for raw in made.objects if raw not in crds]
    outcomes += apply_all(client, rest, made.current, how, say)
    found = made.before.found if made.before else frozenset(made.current)
    record = Record(__version__, made.values, [identity(raw) for raw in made.objects], found)
    if not how.dry_run:
        apply_all(client, [record.encode(made.namespace)], {}, How(force=True), lambda _: None)
    outcomes += delete_all(client, made.leaving, dry_run=how.dry_run, say=say)
    if timeout is not None and not how.dry_run:
        wait_ready(client, made.objects, timeout, say)
    return outcomes


def remove(client: Client, namespace: str, *, crds: bool, dry_run: bool, say: Say, timeout: float) -> None:
    """Remove a release. Raises NothingInstalled, HelmOwns, NotReadyInTime, ApiError."""
    record = read_record(client, namespace)
    if record is None:
        require_ours(read_current(client, release_objects({}, namespace)).values(), take_ownership=True)
        raise NothingInstalled(namespace=namespace)
    require_ours(read_current(client, record.objects).values(), take_ownership=True)
    going = _deletable(record.objects, record, crds=crds)
    delete_all(client, [identity(record.encode(namespace)), *going], dry_run=dry_run, say=say)
    if not dry_run:
        wait_gone(client, going, timeout)
