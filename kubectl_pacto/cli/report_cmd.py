# SPDX-License-Identifier: MIT
"""`kubectl pacto report`: verdicts, findings, coverage and calls on one page that needs nothing else."""

from __future__ import annotations

import time
from typing import Final

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.listing import agent_option, all_option, fail_option, gate, selector_option
from kubectl_pacto.cli.options import InstantType
from kubectl_pacto.cli.terminal import json_text, tell, write
from kubectl_pacto.kube.kubeconfig import Flags

EXAMPLES: Final = """
\b
Examples:
  kubectl pacto report -A --to report.html            # of a cluster, with its operator's verdicts
  kubectl pacto report -f bundle.yaml --at TIME > report.html   # of a bundle, judged here
"""


@click.command(short_help="Verdicts, findings, coverage and calls on one HTML page.", epilog=EXAMPLES)
@with_connection("The namespace to report on. [default: the context's; of files, all]")
@all_option
@selector_option
@click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE_OR_DIR",
    multiple=True,
    help="Report on these objects, as evaluate reads them, instead of a cluster. May be repeated.",
)
@click.option("--at", type=InstantType(), help="With -f: the clock of the evaluation. [default: now]")
@click.option(
    "--pull", is_flag=True, help="Fetch contracts that are only in a registry (without credentials)."
)
@agent_option
@click.option(
    "-o", "--output", "form", type=click.Choice(["html", "json"]), default="html", show_default=True
)
@click.option("--to", metavar="FILE", default="-", help="Where to. [default: stdout]")
@fail_option
def report(  # noqa: PLR0913 -- one for each option
    *,
    flags: Flags,
    everywhere: bool,
    selector: str,
    files: tuple[str, ...],
    at: float | None,
    pull: bool,
    agent_namespace: str,
    form: str,
    to: str,
    fail_on: str,
) -> int:
    """Write verdicts, findings with their evidence, coverage of nodes and who calls whom as one page.

    Needs no network to look at, and holds no script. It holds names of a cluster: treat it as one.
    """
    from kubectl_pacto.cli.evaluate_cmd import puller
    from kubectl_pacto.cli.report.data import Wanted, from_cluster, from_files, report_document
    from kubectl_pacto.conformance.source import load_offline

    if files:
        gathered = from_files(files, time.time() if at is None else at, agent_namespace)
        namespace = "" if everywhere else flags.namespace
    else:
        session = open_session(flags)
        gathered = from_cluster(session, agent_namespace)
        namespace = "" if everywhere else session.namespace
    data, pactos = report_document(gathered, Wanted(namespace, selector), puller() if pull else load_offline)
    if form == "json":
        text = json_text(data) + "\n"
    else:
        from kubectl_pacto.cli.report.page import page

        text = page(data)
    _put(text, to)
    if not pactos:
        tell("no Pacto is in scope" + ("" if everywhere or files else " (-A looks in all namespaces)"))
    return gate(fail_on, [dict(raw) for raw in pactos])


def _put(text: str, to: str) -> None:
    from pathlib import Path

    from kubectl_pacto.cli.errors import CannotWrite

    if to == "-":
        write(text)
        return
    try:
        Path(to).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWrite(file=to, problem=error.strerror) from None
    tell(f"wrote {to}")
