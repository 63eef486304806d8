# SPDX-License-Identifier: MIT
"""Who calls whom: what contracts declare, against what the kernel saw. Pure: objects and a clock in.

By the same rules as a check: what counts as seen here is what a verdict would rest on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubectl_pacto.conformance.source import Loaded
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.contract import Dependency
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Options, Snapshot
from kubectl_pacto.observe.dependency import describe_contact, read_provider
from kubectl_pacto.observe.peers import Callers, Contact, find_callers
from kubectl_pacto.observe.resolve import Resolution, resolve
from kubectl_pacto.observe.undeclared import find_undeclared

# more than these no picture shows; what is wrong is kept first
MOST_BOXES: Final = 150


class State(StrEnum):
    """What is known of one call, the worst first."""

    FAILING = "declared, fails"
    UNDECLARED = "not declared, seen"
    UNRESOLVED = "declared, to no Pacto here"
    SILENT = "declared, not seen"
    SEEN = "declared, seen"


@dataclass(frozen=True, slots=True)
class Call:
    """One arrow: ids of both ends, and why its state is what it is."""

    caller: str
    callee: str
    dependency: str
    state: State
    why: str = ""


def identify(pacto: Pacto) -> str:
    """The id of a Pacto's box."""
    return f"{pacto.namespace}/{pacto.name}"


def find_calls(
    cluster: Cluster, loader: Callable[[Pacto], Loaded], at: float, options: Options
) -> tuple[list[Call], list[str]]:
    """All calls of all Pactos, and whose contracts could not be had (their calls are missing)."""
    calls: list[Call] = []
    unread: list[str] = []
    for pacto in sorted(cluster.pactos, key=identify):
        if pacto.is_reference:
            continue
        loaded = loader(pacto)
        contract = loaded.validated.contract
        if contract is None:
            unread += [identify(pacto)] if loaded.unavailable else []
            continue
        snapshot = Snapshot(at, pacto, contract, cluster, options, loaded.files)
        calls += _calls(snapshot, find_callers(snapshot))
    return calls, unread


def _calls(snapshot: Snapshot, callers: Callers) -> Iterator[Call]:
    caller, resolutions = identify(snapshot.pacto), []
    for dependency in snapshot.contract.dependencies:
        resolution = resolve(snapshot.cluster, dependency)
        resolutions.append(resolution)
        yield _declared(snapshot, callers, dependency, resolution)
    by_service = {(one.namespace, one.service): one for one in snapshot.cluster.pactos if one.service}
    for item in find_undeclared(snapshot, resolutions, callers):
        value = item.value or {}
        callee = by_service.get((str(value.get("namespace")), str(value.get("service"))))
        name = identify(callee) if callee else str(item.subject)
        yield Call(caller, name, item.subject, State.UNDECLARED, item.why)


def _declared(snapshot: Snapshot, callers: Callers, dependency: Dependency, resolution: Resolution) -> Call:
    caller, provider = identify(snapshot.pacto), resolution.provider
    if provider is None:
        return Call(caller, dependency.name, dependency.name, State.UNRESOLVED, resolution.reading.why)
    known, reading = read_provider(snapshot, provider)
    contacts = callers.contacts(known.addresses(snapshot))
    state, why = _seen(contacts)
    if state is State.SILENT:
        why = reading.why if snapshot.options.kernel.enabled else "no kernel evidence was read"
    return Call(caller, identify(provider), dependency.name, state, why)


def _seen(contacts: Iterable[Contact]) -> tuple[State, str]:
    failing: Contact | None = None
    for contact in contacts:
        if contact.is_healthy or contact.is_open:
            return State.SEEN, describe_contact(contact)
        failing = failing or (contact if contact.is_failing else None)
    return (State.FAILING, describe_contact(failing)) if failing else (State.SILENT, "")


def graph_document(
    calls: Iterable[Call], verdicts: Mapping[str, str], scope: Iterable[str]
) -> dict[str, Any]:
    """Boxes and arrows of the Pactos in scope and of those that they call or that call them.

    `verdicts` has the contract status of every Pacto by its id; what is not in it is no Pacto.
    """
    wanted = set(scope)
    found = [call for call in calls if call.caller in wanted or call.callee in wanted]
    order = list(State)
    found.sort(key=lambda call: (order.index(call.state), call.caller, call.callee, call.dependency))
    names: dict[str, None] = {}
    for call in found:
        new = [name for name in (call.caller, call.callee) if name not in names]
        if len(names) + len(new) <= MOST_BOXES:
            names.update(dict.fromkeys(new))
    for name in sorted(wanted):
        if len(names) < MOST_BOXES:
            names.setdefault(name)
    everything = wanted | {name for call in found for name in (call.caller, call.callee)}
    drawn = [call for call in found if call.caller in names and call.callee in names]
    return {
        "boxes": [{"id": name, "contractStatus": verdicts.get(name)} for name in sorted(names)],
        "calls": [
            {
                "caller": call.caller,
                "callee": call.callee,
                "dependency": call.dependency,
                "state": call.state.value,
                "why": call.why,
            }
            for call in drawn
        ],
        "boxesLeftOut": len(everything) - len(names),
    }
