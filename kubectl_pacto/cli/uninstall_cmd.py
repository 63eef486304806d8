# SPDX-License-Identifier: MIT
"""`kubectl pacto uninstall`: remove what install made, and nothing else."""

from __future__ import annotations

import sys
from typing import Final

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.install.command import NAMESPACE, say
from kubectl_pacto.cli.options import Duration
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.kubeconfig import Flags

EXAMPLES: Final = """
\b
Examples:
  kubectl pacto uninstall                      # Pactos and CRDs stay
  kubectl pacto uninstall --delete-crds --yes  # everything goes, every Pacto too
"""


@click.command(short_help="Remove what install made.", epilog=EXAMPLES)
@with_connection(f"The operator's namespace. [default: {NAMESPACE}]")
@click.option("--delete-crds", "crds", is_flag=True, help="Delete the CRDs too, and with them every Pacto.")
@click.option(
    "--dry-run",
    type=click.Choice(["none", "server"]),
    is_flag=False,
    flag_value="server",
    default="none",
    help="server, also without a value: let the cluster say what it would delete. [default: none]",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--timeout", type=Duration(), default=120.0, help="How long to wait. [default: 2m]")
def uninstall(*, flags: Flags, crds: bool, dry_run: str, yes: bool, timeout: float) -> None:
    """Remove operator, node agents and their rights. Pactos and CRDs stay unless --delete-crds is given.

    Namespaces that were there before the installation stay, too.
    """
    from kubectl_pacto.cli.install.release import remove

    namespace = flags.namespace or NAMESPACE
    if not yes and dry_run == "none":
        if sys.stdin is None or not sys.stdin.isatty():
            raise UsageError("standard input is no terminal: pass --yes to uninstall without being asked")
        what = (
            "the operator, its node agents, the CRDs and EVERY PACTO"
            if crds
            else "the operator and its agents"
        )
        click.confirm(f"Remove {what} from namespace {namespace}?", abort=True, err=True)
    session = open_session(flags)
    remove(session.client, namespace, crds=crds, dry_run=dry_run == "server", say=say, timeout=timeout)
