# SPDX-License-Identifier: MIT
"""`kubectl pacto status`: one screen that says how it stands, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.listing import (
    agent_option,
    all_option,
    fail_option,
    gate,
    headers_option,
    output_option,
    selector_option,
)
from kubectl_pacto.cli.terminal import tell, write
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.kubeconfig import Flags

if TYPE_CHECKING:
    from kubectl_pacto.cli.render.status import Fleet
    from kubectl_pacto.collect.fleet import Scope
    from kubectl_pacto.kube.connect import Session

EXAMPLES = """
\b
Examples:
  kubectl pacto status               # the Pactos of this namespace
  kubectl pacto status payments      # one of them
  kubectl pacto status -A -o wide    # all
  kubectl pacto status -A --fail-on error -o json
"""


@click.command(
    short_help="How it stands: operator, node agents, Pactos by verdict, findings.", epilog=EXAMPLES
)
@click.argument("name", required=False, default="")
@with_connection()
@all_option
@selector_option
@output_option
@headers_option
@agent_option
@click.option("-w", "--watch", is_flag=True, help="Go on showing changes until interrupted.")
@fail_option
def status(  # noqa: PLR0913 -- one for each option
    *,
    flags: Flags,
    name: str,
    everywhere: bool,
    selector: str,
    form: str,
    no_headers: bool,
    agent_namespace: str,
    watch: bool,
    fail_on: str,
) -> int:
    """Show operator, node agents and Pactos, those with the worst verdict first, and their findings."""
    from kubectl_pacto.collect.fleet import Scope

    if name and (everywhere or selector):
        raise UsageError("give a NAME, or -A or -l, not both")
    session = open_session(flags)
    scope = Scope("" if everywhere else session.namespace, selector, name)
    if watch:
        _watch(session, scope, lambda: read(session, scope, agent_namespace), form, headers=not no_headers)
    fleet = read(session, scope, agent_namespace)
    _, text = _show(fleet, form, headers=not no_headers)
    write(text)
    if not fleet.pactos and form in ("table", "wide", "name"):
        tell(nothing(scope))
    return gate(fail_on, [dict(raw) for raw in fleet.pactos])


def _watch(session: Session, scope: Scope, again: Callable[[], Fleet], form: str, *, headers: bool) -> None:
    from kubectl_pacto.cli.render.status import status_changes
    from kubectl_pacto.cli.watching import follow
    from kubectl_pacto.kube.paths import PACTO_API, namespaced

    path = namespaced(PACTO_API, scope.namespace, "pactos") if scope.namespace else f"{PACTO_API}/pactos"
    is_table = form in ("table", "wide")
    follow(
        session,
        path,
        lambda: _show(again(), form, headers=headers),
        partial(status_changes, wide=form == "wide") if is_table else None,
    )


def nothing(scope: Scope) -> str:
    """Why the list is empty, and what to do."""
    if scope.selector:
        return f"no Pacto matches {scope.selector!r}"
    if scope.namespace:
        return f"no Pacto in namespace {scope.namespace} (-A looks in all)"
    return "no Pacto in this cluster: `kubectl pacto demo` shows what one does"


def read(session: Session, scope: Scope, agent_namespace: str) -> Fleet:
    """Read all that the screen shows."""
    from kubectl_pacto.cli.render.status import Fleet
    from kubectl_pacto.collect.fleet import Reading, read_agents, read_nodes, read_operator, read_pactos
    from kubectl_pacto.collect.fleet_nodes import node_rows

    reading = Reading()
    pactos = read_pactos(session.client, scope)
    operator = read_operator(session.client, reading)
    agents = read_agents(session.client, agent_namespace, reading)
    nodes = read_nodes(session.client, agent_namespace, reading)
    at = session.now()
    rows = node_rows(nodes, at)
    return Fleet(at, scope.namespace, pactos, operator, agents, rows, reading.refused)


def _show(fleet: Fleet, form: str, *, headers: bool) -> tuple[Mapping[str, Any], str]:
    from kubectl_pacto.cli.render.columns import emit
    from kubectl_pacto.cli.render.status import status_document, status_table

    data = status_document(fleet)
    names = [f"pacto.pacto.trianalab.io/{item['name']}" for item in data["pactos"]]
    text = emit(
        data, form, text=lambda: status_table(data, wide=form == "wide", headers=headers), names=names
    )
    return data, text
