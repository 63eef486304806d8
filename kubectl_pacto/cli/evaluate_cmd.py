# SPDX-License-Identifier: MIT
"""`kubectl pacto evaluate`: the verdict on objects in files, by the code that the operator runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

import click

from kubectl_pacto.cli.evidence_notes import evidence_notes
from kubectl_pacto.cli.options import Duration, FailOn, InstantType, trips
from kubectl_pacto.cli.render.result import Result
from kubectl_pacto.cli.render.results import render
from kubectl_pacto.cli.terminal import tell, write
from kubectl_pacto.cli.unknown_fields import unknown_fields
from kubectl_pacto.collect.objects import Objects, read_objects, read_probes
from kubectl_pacto.conformance.check import check
from kubectl_pacto.conformance.source import Loaded, load_offline, publish_new
from kubectl_pacto.errors import UsageError
from kubectl_pacto.model.bounds import STABILIZATION_SECONDS
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.node import AGENT_NAMESPACE
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import KernelOptions, Options

GATE_TRIPPED = 3
EXAMPLES: Final = """
\b
Examples:
  kubectl pacto evaluate -f bundle.yaml --at TIME   # a bundle, by the clock at which it was taken
  kubectl pacto evaluate -f deploy/ --fail-on unknown -o json
  kubectl pacto bundle | kubectl pacto evaluate -f - --evidence
"""


@click.command(
    short_help="Evaluate Pactos in files: the status each would get in a cluster.", epilog=EXAMPLES
)
@click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE_OR_DIR",
    multiple=True,
    help="Objects as YAML or JSON, of a file, a directory or - for stdin. May be repeated.",
)
@click.argument("more", metavar="[FILE_OR_DIR]...", nargs=-1)
@click.option("--at", type=InstantType(), help="The clock of the evaluation. [default: now]")
@click.option(
    "--stabilization-window",
    "window",
    type=Duration(),
    default=STABILIZATION_SECONDS,
    help="How long an absence must stand before it is a finding. [default: 2m]",
)
@click.option(
    "--staleness", type=Duration(), help="How old a node's heartbeat may be. [default: its Lease's duration]"
)
@click.option("--recency", type=Duration(), help="How old a connection may be. [default: the staleness]")
@click.option("--probe-results", metavar="FILE", help="What probes of Service ports answered.")
@click.option(
    "--kernel-evidence",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="Whether node observations are read; auto: if there are any.",
)
@click.option(
    "--agent-namespace", default=AGENT_NAMESPACE, show_default=True, help="Where node observations are."
)
@click.option(
    "-o", "--output", "form", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)
@click.option(
    "--pull", is_flag=True, help="Fetch contracts that are only in a registry (without credentials)."
)
@click.option("--evidence", "with_evidence", is_flag=True, help="Print what was observed, too.")
@click.option(
    "--enable-metrics-observation",
    "observe_metrics",
    is_flag=True,
    help="Judge metrics capabilities, as the operator does with this flag; needs --probe-results.",
)
@click.option(
    "--interface-name-match-discovery",
    "match_interfaces_by_name",
    is_flag=True,
    help="An interface without a binding is present by a ready Service port of its name.",
)
@click.option(
    "--fail-on",
    type=click.Choice([member.value for member in FailOn]),
    default=FailOn.ERROR.value,
    show_default=True,
    help="Exit with 3 if a finding is at least this.",
)
def evaluate(  # noqa: PLR0913 -- one for each option
    *,
    files: tuple[str, ...],
    more: tuple[str, ...],
    at: float | None,
    probe_results: str | None,
    form: str,
    pull: bool,
    with_evidence: bool,
    fail_on: str,
    **how: Any,
) -> int:
    """Print the status that each Pacto in the given objects would get.

    Objects are what `kubectl get -o yaml` writes: several documents, lists, any mix of kinds.
    """
    if not files and not more:
        raise UsageError("give the objects to evaluate, as in: kubectl pacto evaluate -f bundle.yaml")
    objects = read_objects([*files, *more], keep=["Pacto"])
    cluster = objects.cluster(read_probes(probe_results) if probe_results else None)
    _tell(objects, cluster)
    options = _options(cluster, **how)
    is_now = at is None
    at = time.time() if at is None else at
    for note in evidence_notes(cluster, options.kernel, at, is_now=is_now):
        tell(note)
    results = evaluate_all(
        cluster,
        at=at,
        options=options,
        loader=puller() if pull else load_offline,
    )
    write(render(results, form, with_evidence=with_evidence))
    gate = FailOn(fail_on)
    verdicts = ((result.checked.contract_status, result.checked.summary) for result in results)
    return GATE_TRIPPED if trips(gate, verdicts) else 0


def _options(  # noqa: PLR0913 -- one for each option
    cluster: Cluster,
    *,
    window: float,
    staleness: float | None,
    recency: float | None,
    kernel_evidence: str,
    agent_namespace: str,
    observe_metrics: bool,
    match_interfaces_by_name: bool,
) -> Options:
    kernel = KernelOptions(
        enabled=kernel_evidence == "on" or (kernel_evidence == "auto" and has_agents(cluster)),
        staleness=staleness,
        recency=recency,
        namespace=agent_namespace,
    )
    return Options(window, match_interfaces_by_name, observe_metrics, kernel)


def has_agents(cluster: Cluster) -> bool:
    """Whether nodes report, or the input says that nobody could look."""
    return bool(cluster.nodes) or cluster.failure("NodeRuntimeObservation") is not None


def puller() -> Callable[[Pacto], Loaded]:
    """A loader that also asks registries."""
    from kubectl_pacto.conformance.fetch import INSECURE_VARIABLE, contract_loader, load

    contracts = contract_loader(os.environ.get(INSECURE_VARIABLE, ""))
    return lambda pacto: load(pacto, contracts)


def evaluate_all(
    cluster: Cluster, *, at: float, options: Options, loader: Callable[[Pacto], Loaded] = load_offline
) -> list[Result]:
    """Check every Pacto of a cluster at one moment, in the order of namespace and name."""
    cluster = publish_new(cluster)
    return [
        Result(
            pacto.namespace,
            pacto.name,
            check(pacto, cluster, loader(pacto), at=at, options=options),
        )
        for pacto in sorted(cluster.pactos, key=lambda item: (item.namespace, item.name))
    ]


def _tell(objects: Objects, cluster: Cluster) -> None:
    """What of the input was not looked at, on stderr."""
    if objects.skipped:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(objects.skipped.items()))
        total = sum(objects.skipped.values())
        tell(f"skipped {total} object(s) of kinds that no check reads: {counts}")
    if not cluster.pactos:
        tell("no Pacto in the input: nothing to evaluate")
    for sentence in unknown_fields(objects.kept["Pacto"].values()):
        tell(sentence)
