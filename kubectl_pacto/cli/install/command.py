# SPDX-License-Identifier: MIT
"""The options of install and upgrade, and how a run of them speaks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from kubectl_pacto.cli.options import Duration
from kubectl_pacto.cli.terminal import json_text, printable, tell, write

NAMESPACE: Final = "pacto-operator-system"
OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        "--node-agent/--no-node-agent", "node_agent", default=None, help="Run an agent on each node."
    ),
    click.option(
        "--enable-probing/--no-enable-probing",
        "probing",
        default=None,
        help="Ask Service ports for protocol and health.",
    ),
    click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="A value of the chart, as Helm reads it.",
    ),
    click.option(
        "--set-string",
        "texts",
        metavar="NAME=VALUE",
        multiple=True,
        help="The same, where the value is text: image.tag=20261018.",
    ),
    click.option(
        "-f", "--values", "files", metavar="FILE", multiple=True, help="Values of the chart as YAML."
    ),
    click.option("--reset-values", "reset", is_flag=True, help="Forget the values of the last install."),
    click.option(
        "--dry-run",
        type=click.Choice(["none", "client", "server"]),
        default="none",
        show_default=True,
        help="client: ask no cluster; server: let the cluster check everything and change nothing.",
    ),
    click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(["yaml", "json"]),
        help="Print the objects, change nothing.",
    ),
    click.option("--diff", "with_diff", is_flag=True, help="Show what changes before it does."),
    click.option("--skip-checks", is_flag=True, help="Do not look first whether the cluster can take it."),
    click.option("--take-ownership", is_flag=True, help="Take over CRDs that somebody else made."),
    click.option("--force-conflicts", "force", is_flag=True, help="Take over fields that somebody else set."),
    click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until all of it is ready."),
    click.option(
        "--timeout",
        type=Duration(),
        help="How long to wait until all is ready. [default: 2m; with agents also 20s and a publish interval"
        " (30s at most) for each batch of nodes that a rollout takes at a time (nodeAgent.maxUnavailable)]",
    ),
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What install and upgrade were told."""

    node_agent: bool | None
    probing: bool | None
    settings: tuple[str, ...]
    texts: tuple[str, ...]
    files: tuple[str, ...]
    reset: bool
    dry_run: str
    form: str | None
    with_diff: bool
    skip_checks: bool
    take_ownership: bool
    force: bool
    wait: bool
    timeout: float | None

    def values(self) -> dict[str, Any]:
        """The values given, the flags over the files. Raises UsageError."""
        from kubectl_pacto.cli.install.objects import read_values

        flags = []
        if self.node_agent is not None:
            flags.append(f"nodeAgent.enabled={str(self.node_agent).lower()}")
        if self.probing is not None:
            flags.append(f"controller.enableProbing={str(self.probing).lower()}")
        return read_values(self.files, [*flags, *self.settings], self.texts)


def with_choices(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the command takes these options and gets them as `choices`."""
    names = Choices.__slots__

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        return function(choices=Choices(**{name: given.pop(name) for name in names}), **given)

    wrapped: Callable[..., Any] = call
    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def print_objects(objects: Sequence[Mapping[str, Any]], form: str) -> None:
    """All objects as YAML documents, or as one JSON list that kubectl takes."""
    if form == "json":
        write(json_text({"apiVersion": "v1", "kind": "List", "items": objects}) + "\n")
        return
    from kubectl_pacto.cli.render.plain_yaml import dump

    write("".join(f"---\n{dump(dict(raw))}" for raw in objects))


def say(text: str) -> None:
    """A line about a step: outcomes on standard output, what is waited for on standard error."""
    if text.startswith("waiting for"):
        tell(text)
    else:
        write(f"{printable(text)}\n")
