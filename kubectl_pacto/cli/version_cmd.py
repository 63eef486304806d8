# SPDX-License-Identifier: MIT
"""`kubectl pacto version`: plugin, cluster, operator and agents, and where they differ."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from typing import Any, Final

import click

from kubectl_pacto import __version__
from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.listing import agent_option, anyway_option
from kubectl_pacto.cli.terminal import printable, tell, write
from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.kubeconfig import Flags

EXAMPLES: Final = """
\b
Examples:
  kubectl pacto version            # plugin, cluster, operator and agents
  kubectl pacto version --client   # the plugin alone; asks no cluster
"""


@click.command(short_help="Versions of plugin, cluster, operator and agents.", epilog=EXAMPLES)
@with_connection("Not used: operator and agents are found where they are.")
@anyway_option
@click.option("--client", "client_only", is_flag=True, help="The plugin alone; asks no cluster.")
@agent_option
@click.option(
    "-o", "--output", "form", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
)
def version(*, flags: Flags, client_only: bool, agent_namespace: str, form: str) -> None:
    """Show the versions of all parts. Nothing is asked for beyond the cluster: no release is looked up.

    A cluster that cannot be asked is said on stderr and is no error: the plugin's version still stands.
    """
    from kubectl_pacto.cli.render.columns import document, emit

    data: dict[str, Any] = {
        "client": {
            "version": __version__,
            "python": platform.python_version(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        },
        "server": None,
        "operator": None,
        "nodeAgent": None,
        "agents": {},
        "warnings": [],
    }
    at = time.time()
    if not client_only:
        try:
            at = _ask(flags, agent_namespace, data)
        except PactoError as error:
            tell(f"the cluster cannot be asked: {error}")
    write(emit(document("Version", at, **data), form, text=lambda: _text(data)))


def _ask(flags: Flags, agent_namespace: str, data: dict[str, Any]) -> float:
    """Fill in what the cluster says; its clock."""
    from kubectl_pacto.collect.fleet import Component, Reading, read_agents, read_nodes, read_operator

    def shown(found: Component | None) -> dict[str, Any] | None:
        names = ("namespace", "name", "desired", "ready", "updated", "image")
        return None if found is None else {name: getattr(found, name) for name in names}

    session, reading = open_session(flags), Reading()
    data["server"] = str(session.client.get("/version").get("gitVersion") or "")
    data["operator"] = shown(read_operator(session.client, reading))
    data["nodeAgent"] = shown(read_agents(session.client, agent_namespace, reading))
    for raw in read_nodes(session.client, agent_namespace, reading).observations:
        found = str((raw.get("node") or {}).get("agentVersion") or "unknown")
        data["agents"][found] = data["agents"].get(found, 0) + 1
    others = sorted(set(data["agents"]) - {__version__})
    if others:
        data["warnings"].append(f"agents of other versions report: {', '.join(others)}")
    operator = data["operator"]
    tag = operator["image"].rpartition(":")[2] if operator else __version__
    if tag != __version__:
        data["warnings"].append(f"the operator is {tag}, the plugin {__version__}: kubectl pacto upgrade")
    return session.now()


def _text(data: Mapping[str, Any]) -> str:
    client = data["client"]
    lines = [f"plugin      {client['version']} (Python {client['python']}, {client['platform']})"]
    if data["server"] is not None:
        lines.append(f"Kubernetes  {data['server']}")
        lines.append(f"operator    {data['operator']['image'] if data['operator'] else 'not found'}")
        counts = ", ".join(f"{count} of {name}" for name, count in sorted(data["agents"].items()))
        lines.append(f"agents      {counts or 'none report'}")
    return "\n".join(map(printable, [*lines, *(f"warning: {text}" for text in data["warnings"])]))
