# SPDX-License-Identifier: MIT
"""`kubectl pacto upgrade`: bring an installation to this plugin's version, its values kept."""

from __future__ import annotations

from typing import Final

import click

from kubectl_pacto.cli.connection import with_connection
from kubectl_pacto.cli.install.command import NAMESPACE, Choices, with_choices
from kubectl_pacto.cli.install_cmd import run
from kubectl_pacto.kube.kubeconfig import Flags

EXAMPLES: Final = """
\b
Examples:
  kubectl pacto upgrade --dry-run=server   # what would change
  kubectl pacto upgrade                    # change it
  kubectl pacto upgrade --no-node-agent    # turn the node agents off: their namespace goes
"""


@click.command(short_help="Bring an installation to this version.", epilog=EXAMPLES)
@with_connection(f"The operator's namespace. [default: {NAMESPACE}]")
@with_choices
@click.option("--allow-downgrade", is_flag=True, help="Go on although a newer version is installed.")
def upgrade(*, flags: Flags, choices: Choices, allow_downgrade: bool) -> None:
    """Bring an installation to this plugin's version: CRDs first, the values of the last install kept.

    Exits with 0 if nothing had to change, too. Objects that are no longer part of it are removed. A dry
    run shows the difference.
    """
    run(flags, choices, upgrade=True, allow_downgrade=allow_downgrade)
