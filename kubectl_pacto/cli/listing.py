# SPDX-License-Identifier: MIT
"""Options that the commands share which list things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_pacto.cli.options import FailOn, trips
from kubectl_pacto.cli.render.columns import FORMS
from kubectl_pacto.model.bounds import AGENT_NAMESPACE

if TYPE_CHECKING:
    from kubectl_pacto.engine.ladder import ContractStatus, Summary

GATE_TRIPPED: Final = 3

output_option = click.option(
    "-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True
)
all_option = click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="Look in all namespaces."
)
# of commands that look in all of them as it is: who is used to the flag is not refused for it
anyway_option = click.option(
    "-A",
    "--all-namespaces",
    is_flag=True,
    expose_value=False,
    help="Not needed: all namespaces are read anyway.",
)
selector_option = click.option(
    "-l", "--selector", "selector", metavar="SELECTOR", default="", help="Only Pactos with these labels."
)
headers_option = click.option("--no-headers", is_flag=True, help="Leave out the line of headers.")
agent_option = click.option(
    "--agent-namespace", default=AGENT_NAMESPACE, show_default=True, help="Where the node agents are."
)
staleness_help = "How old a heartbeat may be. [default: what its Lease says]"
fail_option = click.option(
    "--fail-on",
    type=click.Choice([member.value for member in FailOn]),
    default=FailOn.NEVER.value,
    show_default=True,
    help="Exit with 3 if a finding is at least this.",
)


def gate(fail_on: str, pactos: list[dict[str, Any]]) -> int:
    """The exit status: 3 where the gate stops one of these Pactos (raw objects)."""
    if fail_on == FailOn.NEVER:
        return 0
    return GATE_TRIPPED if trips(FailOn(fail_on), [_verdict(raw) for raw in pactos]) else 0


def _verdict(raw: Mapping[str, Any]) -> tuple[ContractStatus, Summary]:
    from kubectl_pacto.engine.ladder import ContractStatus, Summary

    status = raw.get("status") or {}
    summary = status.get("summary") or {}
    counts = [int(summary.get(f"{name}Count") or 0) for name in ("error", "warning", "info", "unknown")]
    try:
        word = ContractStatus(status.get("contractStatus") or "Unknown")
    except ValueError:
        word = ContractStatus.UNKNOWN
    return word, Summary(*counts)
