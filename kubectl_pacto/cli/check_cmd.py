# SPDX-License-Identifier: MIT
"""`kubectl pacto check`: is everything as it must be, and if not, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from kubectl_pacto.cli.checks import REST, Check, Result, Scope, run_groups, worst
from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.errors import NotPossible
from kubectl_pacto.cli.install.command import NAMESPACE
from kubectl_pacto.cli.listing import agent_option
from kubectl_pacto.cli.terminal import may_colour, paint, printable, tell, write
from kubectl_pacto.kube.kubeconfig import Flags

Groups = Sequence[tuple[str, Sequence[Check]]]
COLOURS: Final = {Result.OK: "green", Result.WARNING: "yellow", Result.FAILED: "red", Result.SKIPPED: "dim"}
EXAMPLES: Final = """
\b
Examples:
  kubectl pacto check --pre    # can this cluster take it, and may I install it?
  kubectl pacto check          # does all of it run?
  kubectl pacto check -o short # what is wrong, to paste into a chat
"""


@click.command(short_help="Is everything as it must be, and if not, what to do.", epilog=EXAMPLES)
@with_connection(f"The operator's namespace. [default: {NAMESPACE}]")
@click.option("--pre", is_flag=True, help="Before an installation: what it needs.")
@agent_option
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "short", "json"]),
    default="table",
    show_default=True,
    help="short: only what is wrong.",
)
def check(*, flags: Flags, pre: bool, agent_namespace: str, form: str) -> int:
    """Check the installation, or with --pre whether there can be one. Goes on after a failure,
    unless it is one of the way to the cluster.

    Exits with 1 if a check failed; warnings are 0.
    """
    from kubectl_pacto.cli.checks.cluster import BEFORE
    from kubectl_pacto.cli.checks.installed import AFTER

    session = open_session(flags)
    scope = Scope(session, flags.namespace or NAMESPACE, agent_namespace)
    groups = list(run_groups(BEFORE if pre else AFTER, scope))
    everything = [one for _, checks in groups for one in checks]
    if form == "json":
        from kubectl_pacto.cli.render.columns import document, emit

        data = document("CheckReport", session.now(), **_data(groups))
        write(emit(data, form, text=str))
    else:
        write("".join(f"{line}\n" for line in _lines(groups, short=form == "short")))
    return 1 if worst(everything) is Result.FAILED else 0


def require_possible(flags: Flags, namespace: str, values: Mapping[str, Any]) -> None:
    """The checks before an installation; raises NotPossible naming all that fail."""
    from kubectl_pacto.cli.checks.cluster import BEFORE

    agent = values.get("nodeAgent") or {}
    wants = bool(isinstance(agent, dict) and agent.get("enabled"))
    scope = Scope(open_session(flags), namespace, "", wants_agent=wants)
    failed, told = [], []
    for _, checks in run_groups(BEFORE, scope):
        failed += [one for one in checks if one.result is Result.FAILED]
        told += [one for one in checks if one.result is Result.WARNING]
    for one in told:
        tell(f"warning: not so: {one.what}: {one.detail}")
    if failed:
        raise NotPossible(problems="; ".join(f"{one.id}: {one.detail or one.what}" for one in failed))


def _data(groups: Groups) -> dict[str, Any]:
    everything = [one for _, checks in groups for one in checks]
    results = [one.result for one in everything]
    return {
        "success": worst(everything) is not Result.FAILED,
        "counts": {result.value: results.count(result) for result in Result},
        "groups": [
            {
                "group": name,
                "checks": [
                    {
                        "id": one.id,
                        "result": one.result.value,
                        "what": one.what,
                        "detail": one.detail,
                        "hint": one.hint,
                    }
                    for one in checks
                ],
            }
            for name, checks in groups
        ],
    }


def _lines(groups: Groups, *, short: bool) -> Iterator[str]:
    for name, checks in groups:
        shown = [one for one in checks if not short or _is_wrong(one)]
        if shown and not short:
            yield name
            yield "-" * len(name)
        for one in shown:
            yield from _check(one)
        if shown and not short:
            yield ""
    counts = _data(groups)["counts"]
    yield "Result: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _is_wrong(one: Check) -> bool:
    return one.id == REST or one.result in (Result.WARNING, Result.FAILED)


def _check(one: Check) -> Iterator[str]:
    word = f"{one.result.value:<8}"
    yield f"{paint(word, COLOURS[one.result]) if may_colour() else word} {printable(one.what)} [{one.id}]"
    if one.detail:
        yield printable(f"         {one.detail}")
    if one.hint:
        yield printable(f"         {one.hint}")
