# SPDX-License-Identifier: MIT
"""`kubectl pacto bundle`: what a verdict rests on, in one file that `evaluate` reads anywhere."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.errors import CannotWrite
from kubectl_pacto.cli.listing import agent_option, anyway_option
from kubectl_pacto.cli.terminal import json_text, tell
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.kubeconfig import Flags

EXAMPLES: Final = """
\b
Examples:
  kubectl pacto bundle --to bundle.yaml
  kubectl pacto evaluate -f bundle.yaml --at TIME   # TIME as bundle said it
"""


def _refuse_filename(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    """Elsewhere -f names what is read: nobody may write over a file by that habit."""
    if value is not None:
        raise UsageError(f"bundle reads no file; to write one: --to {shlex.quote(value)}")


@click.command(short_help="Collect what a verdict rests on into one file.", epilog=EXAMPLES)
@with_connection("Not used: all namespaces are read, for a dependency may be in any.")
@anyway_option
@click.option("--to", "file", metavar="FILE", default="-", help="Where to. [default: stdout]")
@click.option("-f", "--filename", hidden=True, expose_value=False, callback=_refuse_filename)
@click.option(
    "-o", "--output", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True
)
@agent_option
def bundle(*, flags: Flags, file: str, form: str, agent_namespace: str) -> None:
    """Collect Pactos and all objects that their verdicts rest on, so that `evaluate` repeats them anywhere.

    Holds no Secret, no value of an environment variable, and a ConfigMap only where a Pacto binds it.
    """
    from kubectl_pacto.cli.install.command import print_objects
    from kubectl_pacto.cli.render.plain_yaml import dump
    from kubectl_pacto.collect.bundle import read_bundle
    from kubectl_pacto.collect.fleet import Reading
    from kubectl_pacto.model.instant import format_instant

    session, reading = open_session(flags), Reading()
    objects = list(read_bundle(session.client, agent_namespace, reading))
    if file == "-":
        print_objects(objects, form)
    else:
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        text = json_text(whole, 1) if form == "json" else "".join(f"---\n{dump(raw)}" for raw in objects)
        try:
            Path(file).write_text(f"{text.rstrip()}\n", encoding="utf-8")
        except OSError as error:
            raise CannotWrite(file=file, problem=error.strerror) from None
    for what, why in reading.refused.items():
        tell(f"left out, may not be read: {what}: {why}")
    tell(f"{len(objects)} objects at {format_instant(session.now())}")
