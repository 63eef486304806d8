# SPDX-License-Identifier: MIT
"""`kubectl pacto findings`: every finding, with who saw it and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.listing import (
    all_option,
    fail_option,
    gate,
    headers_option,
    output_option,
    selector_option,
)
from kubectl_pacto.cli.options import Code
from kubectl_pacto.cli.terminal import tell, write
from kubectl_pacto.kube.kubeconfig import Flags
from kubectl_pacto.model.evidence import Collector
from kubectl_pacto.model.finding import Severity

Raw = Mapping[str, Any]
EXAMPLES: Final = """
\b
Examples:
  kubectl pacto findings -A
  kubectl pacto findings -A --collector ebpf --collector k8s-observer+ebpf   # what the kernel decided
  kubectl pacto findings --code INTERFACE_ABSENT -o json
"""


@click.command(short_help="Every finding, with its evidence.", epilog=EXAMPLES)
@click.argument("name", required=False, default="")
@with_connection()
@all_option
@selector_option
@click.option("--code", "codes", metavar="CODE", type=Code(), multiple=True, help="Only these codes.")
@click.option(
    "--severity",
    "severities",
    type=click.Choice([member.value for member in Severity]),
    multiple=True,
    help="Only these severities.",
)
@click.option(
    "--collector",
    "collectors",
    type=click.Choice([member.value for member in Collector]),
    multiple=True,
    help="Only findings that these collectors decided.",
)
@output_option
@headers_option
@fail_option
def findings(  # noqa: PLR0913 -- one for each option
    *,
    flags: Flags,
    name: str,
    everywhere: bool,
    selector: str,
    codes: tuple[str, ...],
    severities: tuple[str, ...],
    collectors: tuple[str, ...],
    form: str,
    no_headers: bool,
    fail_on: str,
) -> int:
    """Show every finding: about what, what it says, who saw it, and when. `explain CODE` says what it means.

    --fail-on looks at all findings of the Pactos, those that a filter leaves out, too.
    """
    from kubectl_pacto.cli.render.columns import document, emit
    from kubectl_pacto.cli.status_cmd import nothing
    from kubectl_pacto.collect.fleet import Scope, read_pactos

    session = open_session(flags)
    scope = Scope("" if everywhere else session.namespace, selector, name)
    pactos = read_pactos(session.client, scope)
    wanted = [frozenset(codes), frozenset(severities), frozenset(collectors)]
    items = [item for item in _items(pactos) if _passes(item, wanted)]
    data = document("FindingList", session.now(), items=items)
    names = [
        f"finding/{item['namespace']}/{item['pacto']}/{item['code']}/{item['subject']}" for item in items
    ]
    write(emit(data, form, text=lambda: _text(items, form, not no_headers), names=names))
    if not items and form in ("table", "wide", "name"):
        tell("no findings" if pactos else nothing(scope))
    return gate(fail_on, pactos)


def _items(pactos: Sequence[Raw]) -> Iterator[dict[str, Any]]:
    from kubectl_pacto.cli.render.severities import severity_rank

    for raw in pactos:
        metadata = raw["metadata"]
        found = (raw.get("status") or {}).get("findings") or []
        for finding in sorted(found, key=severity_rank):
            yield {
                "namespace": metadata["namespace"],
                "pacto": metadata["name"],
                **{key: finding.get(key, "") for key in ("code", "severity", "category", "subject")},
                "contractPath": finding.get("contractPath", ""),
                "message": finding.get("message", ""),
                "evidenceRefs": finding.get("evidenceRefs") or [],
            }


def _passes(item: Raw, wanted: Sequence[frozenset[str]]) -> bool:
    codes, severities, collectors = wanted
    seen = {str(ref.get("collector")) for ref in item["evidenceRefs"]}
    return (
        (not codes or item["code"] in codes)
        and (not severities or item["severity"] in severities)
        and (not collectors or bool(seen & collectors))
    )


def _text(items: Sequence[Raw], form: str, headers: bool) -> str:
    from kubectl_pacto.cli.render.columns import Column, table

    def of_evidence(key: str) -> Any:
        return lambda row: ",".join(dict.fromkeys(str(ref.get(key)) for ref in row["evidenceRefs"]))

    columns = (
        Column("NAMESPACE", lambda row: row["namespace"]),
        Column("PACTO", lambda row: row["pacto"]),
        Column("SEVERITY", lambda row: row["severity"]),
        Column("CODE", lambda row: row["code"]),
        Column("SUBJECT", lambda row: row["subject"]),
        Column("SOURCE", of_evidence("source")),
        Column("COLLECTOR", of_evidence("collector")),
        Column("OBSERVED", of_evidence("observedAt")),
        Column("DETECTED", of_evidence("detectedAt"), wide=True),
        Column("PATH", lambda row: row["contractPath"], wide=True),
        Column("MESSAGE", lambda row: row["message"]),
    )
    return table(items, columns, wide=form == "wide", headers=headers)
