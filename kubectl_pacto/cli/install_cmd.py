# SPDX-License-Identifier: MIT
"""`kubectl pacto install`: from nothing to a running operator, and its node agents if wanted."""

from __future__ import annotations

from typing import Final

import click

from kubectl_pacto import __version__
from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.install.command import NAMESPACE, Choices, print_objects, say, with_choices
from kubectl_pacto.cli.terminal import tell, write
from kubectl_pacto.kube.kubeconfig import Flags

EXAMPLES: Final = """
\b
Examples:
  kubectl pacto install                              # the operator alone
  kubectl pacto install --node-agent                 # with an agent on each node
  kubectl pacto install --node-agent -o yaml > pacto.yaml   # for GitOps: what it would apply
  kubectl pacto install --dry-run=server --diff

\b
The image that it names is not published yet. Build one, push it ("Build the image" in
docs/getting-started.md), and give its name, for the operator and for the agents:
  kubectl pacto install --node-agent \\
    --set image.repository=REGISTRY/pacto,image.tag=TAG,nodeAgent.image=REGISTRY/pacto:TAG
"""


@click.command(short_help="Install the operator and, if wanted, the node agents.", epilog=EXAMPLES)
@with_connection(f"The operator's namespace. [default: {NAMESPACE}]")
@with_choices
def install(*, flags: Flags, choices: Choices) -> None:
    """Install the operator: CRDs, rights, admission policy, Deployment, by server-side apply.

    Running it again changes nothing, or what the given values change; those of the last install are
    kept. What a Helm release or another operator owns is never touched.
    """
    run(flags, choices, upgrade=False)


def run(flags: Flags, choices: Choices, *, upgrade: bool, allow_downgrade: bool = False) -> None:
    """Install or upgrade. Raises PactoError."""
    from kubectl_pacto.cli.errors import NothingInstalled
    from kubectl_pacto.cli.install.apply import How, Outcome, diff, foresee
    from kubectl_pacto.cli.install.objects import release_objects, title_of
    from kubectl_pacto.cli.install.release import carry_out, plan, require_newer

    namespace, values = flags.namespace or NAMESPACE, choices.values()
    if not upgrade and (choices.form or choices.dry_run == "client"):
        objects = release_objects(values, namespace)
        if choices.form:
            print_objects(objects, choices.form)
        else:
            write("".join(f"{title_of(raw)} created (dry run)\n" for raw in objects))
        return
    session = open_session(flags)
    made = plan(session.client, namespace, values, reset=choices.reset, take_ownership=choices.take_ownership)
    if upgrade and made.before is None:
        raise NothingInstalled(namespace=namespace)
    require_newer(made, allowed=allow_downgrade)
    if choices.form:
        print_objects(made.objects, choices.form)
        return
    if upgrade and made.before is not None and made.before.version != __version__:
        tell(f"from {made.before.version} to {__version__}")
    # who tries an upgrade wants to see what it would do
    if choices.with_diff or (upgrade and choices.dry_run != "none"):
        write(diff(made.objects, made.current))
    if choices.dry_run == "client":
        foreseen = foresee(made.objects, made.current, made.leaving)
        write("".join(f"{title} {outcome} (dry run)\n" for title, outcome in foreseen))
        return
    if not choices.skip_checks:
        _preflight(flags, namespace, made.values)
    how = How(dry_run=choices.dry_run == "server", force=choices.force)
    outcomes = carry_out(session.client, made, how, say, wait=choices.wait, timeout=choices.timeout)
    if not how.dry_run:
        state = "ready" if choices.wait else "applied (not waited for)"
        _next_steps(state, changed=set(outcomes) != {Outcome.UNCHANGED}, values=made.values)


def _preflight(flags: Flags, namespace: str, values: dict[str, object]) -> None:
    from kubectl_pacto.cli.check_cmd import require_possible

    require_possible(flags, namespace, values)


def _next_steps(state: str, *, changed: bool, values: dict[str, object]) -> None:
    """What to do now, on stderr: standard output is for what happened."""
    agent = values.get("nodeAgent")
    has_agent = isinstance(agent, dict) and agent.get("enabled")
    tell(f"pacto is {state}" + ("" if changed else "; nothing changed"))
    tell(f"next: kubectl pacto {'coverage' if has_agent else 'status -A'}")
