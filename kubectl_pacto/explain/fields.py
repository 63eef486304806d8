# SPDX-License-Identifier: MIT
"""The inventory of contract fields: for each, what evidence can contradict it, or why none can."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from kubectl_pacto.explain import NOTE
from kubectl_pacto.yamltext import load_contract

SOURCE: Final = "kubectl_pacto/explain/fields.yaml"


@dataclass(frozen=True, slots=True)
class Field:
    """One field, by its path in the contract; `row` names a table and its row, `why` no contradiction."""

    field: str
    finding: str = ""
    evidence: str = ""
    row: str = ""
    why: str = ""


@cache
def fields() -> tuple[Field, ...]:
    """Every entry, in the order of the contract's sections."""
    text = (files("kubectl_pacto.explain") / "fields.yaml").read_text(encoding="utf-8")
    return tuple(Field(**item) for item in load_contract(text).data)


def _link(code: str) -> str:
    return f"[{code}](findings/{code}.md)"


def field_coverage_page() -> str:
    """The text of docs/field-coverage.md."""
    judged = [
        f"| `{item.field}` | `{item.evidence}` | {_link(item.finding)} | {item.row} |"
        for item in fields()
        if item.finding
    ]
    others = [f"| `{item.field}` | {item.why} |" for item in fields() if not item.finding]
    lines = [
        "# Field coverage",
        "",
        "What evidence can contradict each field of a contract, and the row of `tests/tables` that shows it.",
        "",
        "| field | evidence | finding | shown by |",
        "| --- | --- | --- | --- |",
        *judged,
        "",
        "Nothing at run time contradicts these:",
        "",
        "| field | why |",
        "| --- | --- |",
        *others,
        "",
    ]
    return NOTE.format(source=SOURCE) + "\n".join(lines)
