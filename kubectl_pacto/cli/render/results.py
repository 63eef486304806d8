# SPDX-License-Identifier: MIT
"""Results of `evaluate` as text: a table for a person, JSON or YAML for a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_pacto.cli.render.result import Result
from kubectl_pacto.cli.terminal import json_text
from kubectl_pacto.model.evidence import encode_evidence

__all__ = ["Result", "as_data", "render"]


def as_data(results: Sequence[Result], *, with_evidence: bool) -> list[dict[str, Any]]:
    """The bare list that `-o json` prints."""
    found = []
    for result in results:
        item: dict[str, Any] = {
            "namespace": result.namespace,
            "name": result.name,
            "status": dict(result.checked.status),
        }
        if with_evidence and result.checked.evidence is not None:
            item["evidence"] = encode_evidence(result.checked.evidence)
        found.append(item)
    return found


def render(results: Sequence[Result], form: str, *, with_evidence: bool = False) -> str:
    """The text of results in a form: table, json or yaml; it ends with a newline."""
    if form == "json":
        return json_text(as_data(results, with_evidence=with_evidence)) + "\n"
    if form == "yaml":
        import yaml

        data = as_data(results, with_evidence=with_evidence)
        return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100))
    from kubectl_pacto.cli.render.table import render_table

    return render_table(results, with_evidence=with_evidence)
