# SPDX-License-Identifier: MIT
"""`kubectl pacto demo`: three findings that the kernel decides, on this machine, without a cluster."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kubectl_pacto.cli.demo import preflight
from kubectl_pacto.cli.demo.judge import STALENESS_SECONDS, WINDOW_SECONDS
from kubectl_pacto.cli.demo.report import render
from kubectl_pacto.cli.demo.run import make_folder, run, stderr_say
from kubectl_pacto.cli.options import Duration
from kubectl_pacto.model.instant import format_instant


@click.command(short_help="Watch the kernel decide a finding on this machine (root, Linux 5.8 or later).")
@click.option(
    "--timeout",
    type=Duration(),
    default=60.0,
    help="How long to wait for the verdict. [default: 60s]",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the judged objects there, so that `kubectl pacto evaluate` can judge them again.",
)
@click.option(
    "-o", "--output", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def demo(*, timeout: float, keep: Path | None, form: str) -> int:
    """Watch the kernel decide findings on this machine: no cluster, nothing installed, nothing left.

    Makes four pods out of real processes, network namespaces and cgroups. One passes its readiness
    probe and never opens its port; one calls what its contract declares, and what it does not. The
    node agent watches them through eBPF, and `evaluate` judges what it saw. Needs root and Linux 5.8
    or later with BTF. Everything is removed again, also after Ctrl-C.
    """
    facts = preflight.read_facts()
    preflight.require(facts)
    if keep is not None:
        make_folder(keep)  # before the wait, not after it
    ended = run(facts.writable[0], timeout=timeout, keep=keep, say=stderr_say)
    if ended.signal:
        stderr_say("interrupted; everything is removed again" if ended.is_clean else "interrupted")
        return 128 + ended.signal
    assert ended.outcome is not None
    stderr_say("")
    click.echo(render(ended.outcome, form), nl=False)
    if keep is not None:
        stderr_say(f"judge it again: {_replay(keep, ended.outcome.judge.at)}")
    return 0 if ended.outcome.is_complete and ended.is_clean else 1


def _replay(directory: Path, at: float) -> str:
    return (
        f"kubectl pacto evaluate -f {shlex.quote(str(directory))} --at {format_instant(at, digits=3)} "
        f"--stabilization-window {WINDOW_SECONDS:g}s --staleness {STALENESS_SECONDS:g}s"
    )
