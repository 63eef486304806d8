# SPDX-License-Identifier: MIT
"""`kubectl pacto suggest`: dependencies that the kernel saw and no contract declares, as a contract patch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from kubectl_pacto.cli.connection import open_session, with_connection
from kubectl_pacto.cli.listing import all_option, selector_option
from kubectl_pacto.cli.terminal import json_text, printable, tell, write
from kubectl_pacto.kube.kubeconfig import Flags

Raw = Mapping[str, Any]
CODE: Final = "DEPENDENCY_UNDECLARED"
EXAMPLES: Final = """
\b
Examples:
  kubectl pacto suggest orders    # what to add to the contract of orders
  kubectl pacto suggest -A -o json
"""


@click.command(short_help="Dependencies seen and not declared, as a contract patch.", epilog=EXAMPLES)
@click.argument("name", required=False, default="")
@with_connection()
@all_option
@selector_option
@click.option(
    "-o", "--output", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True
)
def suggest(*, flags: Flags, name: str, everywhere: bool, selector: str, form: str) -> None:
    """Print what to add to contracts for the dependencies that the kernel saw and none declares.

    `ref` and `compatibility` are those of the provider's own contract; an empty ref is one that only
    you know. Whether a dependency is required is for its owner to say: the patch says false.
    """
    from kubectl_pacto.cli.status_cmd import nothing
    from kubectl_pacto.collect.fleet import Scope, read_pactos

    session = open_session(flags)
    scope = Scope("" if everywhere else session.namespace, selector, name)
    pactos = read_pactos(session.client, scope)
    undeclared = [raw for raw in pactos if list(_services(raw))]
    if not undeclared:
        tell(nothing(scope) if not pactos else "no undeclared dependency was seen")
        return
    providers = _providers(read_pactos(session.client, Scope()))
    patches = [patch for raw in undeclared for patch in [_patch(raw, providers)]]
    write(_text(patches, form))


def _services(raw: Raw) -> Iterator[str]:
    """The services of the findings, each once."""
    found = (raw.get("status") or {}).get("findings") or ()
    yield from dict.fromkeys(
        str(one.get("subject", "")).removeprefix("dependency/") for one in found if one.get("code") == CODE
    )


def _providers(pactos: Sequence[Raw]) -> dict[str, tuple[str, str]]:
    """Contract ref and version by service name."""
    found = {}
    for raw in pactos:
        contract = (raw.get("status") or {}).get("contract") or {}
        ref = str(((raw.get("spec") or {}).get("contractRef") or {}).get("oci") or "")
        if contract.get("serviceName"):
            found[str(contract["serviceName"])] = (ref, str(contract.get("version") or ""))
    return found


def _patch(raw: Raw, providers: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    dependencies = []
    for service in _services(raw):
        ref, version = providers.get(service, ("", ""))
        shown = f"oci://{ref.removeprefix('oci://')}" if ref else ""
        compatibility = f"^{version}" if version else "*"
        dependencies.append(
            {"name": service, "ref": shown, "compatibility": compatibility, "required": False}
        )
    metadata = raw["metadata"]
    return {
        "namespace": metadata["namespace"],
        "pacto": metadata["name"],
        "patch": {"dependencies": dependencies},
    }


def _text(patches: Sequence[Raw], form: str) -> str:
    if form == "json":
        return json_text(patches) + "\n"
    from kubectl_pacto.cli.render.plain_yaml import dump

    parts = (
        printable(f"# to the contract of {one['namespace']}/{one['pacto']}") + f"\n{dump(one['patch'])}"
        for one in patches
    )
    return "---\n".join(parts)
