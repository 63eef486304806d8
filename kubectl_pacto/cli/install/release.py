# SPDX-License-Identifier: MIT
"""One release from values to a running operator: the steps of install, upgrade and uninstall."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto import __version__
from kubectl_pacto.cli.errors import NothingInstalled, NotPrivileged, WouldDowngrade
from kubectl_pacto.cli.install.apply import How, Outcome, apply_all, delete_all
from kubectl_pacto.cli.install.objects import merge, path_of, release_objects, title_of
from kubectl_pacto.cli.install.ownership import is_ours, read_current, require_ours
from kubectl_pacto.cli.install.record import Record, identity, read_record
from kubectl_pacto.cli.install.wait import wait_gone, wait_ready
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound

Raw = Mapping[str, Any]
Say = Callable[[str], None]
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
PRIVILEGED: Final = "privileged"


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be there, what there is now of it, and what goes because it is no longer part of it.

    `kept` are namespaces that are part of the release and stay as they are; `objects` is without them.
    """

    namespace: str
    values: dict[str, Any]
    objects: Sequence[dict[str, Any]]
    current: Mapping[str, dict[str, Any]]
    kept: Sequence[Raw] = ()
    leaving: Sequence[Raw] = ()
    before: Record | None = None

    @property
    def found(self) -> frozenset[str]:
        """The paths of what was there before us."""
        return _found(self.current, self.before)


def plan(client: Client, namespace: str, given: Raw, *, reset: bool, take_ownership: bool) -> Plan:
    """Work out a release. Raises HelmOwns, AnotherOwns, NotPrivileged, UsageError, ApiError."""
    before = read_record(client, namespace)
    values = merge(before.values if before and not reset else {}, given)
    objects = release_objects(values, namespace)
    _require_served(client, objects)
    current = read_current(client, objects)
    require_ours(current.values(), take_ownership=take_ownership)
    paths = {path_of(raw) for raw in objects}
    leaving = [raw for raw in (before.objects if before else ()) if path_of(raw) not in paths]
    kept = _kept(objects, current, namespace, _found(current, before))
    applied = [raw for raw in objects if raw not in kept]
    return Plan(namespace, values, applied, current, kept, _deletable(leaving, before), before)


def _require_served(client: Client, objects: Sequence[Raw]) -> None:
    """Raises UsageError for the one kind that is neither Kubernetes' nor ours, before anything is made."""
    for raw in objects:
        if raw["kind"] == "ServiceMonitor":
            try:
                client.get(f"/apis/{raw['apiVersion']}")
            except ApiNotFound:
                raise UsageError(
                    "metrics.serviceMonitor.enabled needs the Prometheus operator: this cluster does not"
                    f" serve {raw['apiVersion']}"
                ) from None


def _found(current: Mapping[str, Raw], before: Record | None) -> frozenset[str]:
    made = {path_of(raw) for raw in before.objects} if before else set()
    # an installation that did not get to its end left no record, but its mark on what it made
    others = {path for path, raw in current.items() if path not in made and not is_ours(raw)}
    return (before.found if before else frozenset()) | others


def _kept(
    objects: Sequence[Raw], current: Mapping[str, Raw], namespace: str, found: frozenset[str]
) -> list[Raw]:
    """Namespaces that are there and that nothing of ours changes. Raises NotPrivileged.

    The operator's keeps whatever Pod Security level it has, since when it is there. One that somebody
    made for the agents is used if it is privileged, and never made so: other pods may run in it.
    """
    kept = []
    for raw in objects:
        path = path_of(raw)
        if raw["kind"] != "Namespace" or path not in current:
            continue
        if raw["metadata"]["name"] == namespace:
            kept.append(raw)
        elif path in found:
            level = (current[path]["metadata"].get("labels") or {}).get(ENFORCE, PRIVILEGED)
            if level != PRIVILEGED:
                raise NotPrivileged(namespace=raw["metadata"]["name"], level=level)
            kept.append(raw)
    return kept


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


def carry_out(
    client: Client, made: Plan, how: How, say: Say, *, wait: bool, timeout: float | None
) -> list[Outcome]:
    """Apply a plan, keep the record, remove what leaves; wait for so many seconds, None: as is usual."""
    crds = [raw for raw in made.objects if raw["kind"] == "CustomResourceDefinition"]
    outcomes = apply_all(client, crds, made.current, how, say)
    if not how.dry_run:
        wait_ready(client, crds, timeout, say)
    for raw in made.kept:
        say(f"{title_of(raw)} {Outcome.UNCHANGED.value}{how.suffix}")
        outcomes.append(Outcome.UNCHANGED)
    rest = [raw for raw in made.objects if raw not in crds]
    outcomes += apply_all(client, rest, made.current, how, say)
    # namespaces before what is in them, as they are removed in the opposite order
    whole = [identity(raw) for raw in (*crds, *made.kept, *rest)]
    record = Record(__version__, made.values, whole, made.found)
    if not how.dry_run:
        apply_all(client, [record.encode(made.namespace)], {}, How(force=True), lambda _: None)
    outcomes += delete_all(client, made.leaving, dry_run=how.dry_run, say=say)
    if wait and not how.dry_run:
        wait_ready(client, [*made.objects, *_by_operator(made.values)], timeout, say)
    return outcomes


def _by_operator(values: Raw) -> list[Raw]:
    """What the operator makes of these values, and whoever installs agents waits for."""
    if not (values.get("nodeAgent") or {}).get("enabled"):
        return []
    from kubectl_pacto.controller.manifests.agent_objects import desired
    from kubectl_pacto.controller.manifests.release_values import agent_values, complete

    return [desired(agent_values(complete(values)))]


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
