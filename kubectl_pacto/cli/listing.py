# SPDX-License-Identifier: MIT
"""Options that the commands share which list things, and how such a command watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from kubectl_pacto.cli.options import FailOn, trips
from kubectl_pacto.cli.render.columns import FORMS
from kubectl_pacto.cli.terminal import is_terminal, write
from kubectl_pacto.engine.ladder import ContractStatus, Summary
from kubectl_pacto.model.node import AGENT_NAMESPACE

GATE_TRIPPED: Final = 3
WATCH_SECONDS: Final = 2.0
HOME_AND_CLEAR: Final = "\x1b[H\x1b[J"
# what changes without anything having changed
_VOLATILE: Final = frozenset({"generatedAt", "checkedSecondsAgo", "heartbeatAgeSeconds", "lastReconciledAt"})

output_option = click.option(
    "-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True
)
all_option = click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="Look in all namespaces."
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
    return GATE_TRIPPED if trips(FailOn(fail_on), [_verdict(raw) for raw in pactos]) else 0


def _verdict(raw: Mapping[str, Any]) -> tuple[ContractStatus, Summary]:
    status = raw.get("status") or {}
    summary = status.get("summary") or {}
    counts = [int(summary.get(f"{name}Count") or 0) for name in ("error", "warning", "info", "unknown")]
    try:
        word = ContractStatus(status.get("contractStatus") or "Unknown")
    except ValueError:
        word = ContractStatus.UNKNOWN
    return word, Summary(*counts)


def follow(once: Callable[[], tuple[Mapping[str, Any], str]], seconds: float = WATCH_SECONDS) -> None:
    """Show what `once` gives (a document and its text) again and again until interrupted.

    On a terminal the screen is redrawn; elsewhere a text is printed when its document has changed.
    """
    before: object = None
    while True:
        data, text = once()
        if is_terminal():
            write(f"{HOME_AND_CLEAR}{text}")
        elif (now := steady(data)) != before:
            write(text)
            before = now
        time.sleep(seconds)


def steady(data: object) -> object:
    """A document without what the clock alone changes."""
    if isinstance(data, Mapping):
        return {key: steady(value) for key, value in data.items() if key not in _VOLATILE}
    return [steady(item) for item in data] if isinstance(data, list | tuple) else data
