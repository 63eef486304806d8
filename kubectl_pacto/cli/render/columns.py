# SPDX-License-Identifier: MIT
"""Rows as kubectl prints them, and documents as JSON, YAML or names.

Not tabulate: importing it costs a third of what `status` may take, and kubectl's form is a few pads.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.cli.terminal import json_text, may_colour, paint_word, printable

FORMS: Final = ("table", "wide", "json", "yaml", "name")
API_VERSION: Final = "cli.pacto.trianalab.io/v1"
WIDTH: Final = 100
Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its header, how a row's text is had, and whether only `-o wide` shows it."""

    header: str
    text: Callable[[Raw], object]
    wide: bool = False


def table(rows: Sequence[Raw], columns: Sequence[Column], *, wide: bool = False, headers: bool = True) -> str:
    """The lines of a table, without a final newline; empty for no rows."""
    if not rows:
        return ""
    shown = [column for column in columns if wide or not column.wide]
    cells = [[column.header for column in shown]] if headers else []
    cells += [[_cell(column.text(row)) for column in shown] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(shown))]
    paint: Callable[[str], str] = paint_word if may_colour() else str
    lines = []
    for line in cells:
        padded = [text.ljust(width) for text, width in zip(line[:-1], widths, strict=False)]
        lines.append("   ".join(paint(text) for text in (*padded, line[-1])).rstrip())
    return "\n".join(lines)


def _cell(value: object) -> str:
    return "<none>" if value is None or value == "" else _line(value)


def _line(value: object) -> str:
    """A value on one line."""
    return printable(str(value).replace("\n", "\\n"))


def indented(head: str, message: str) -> Iterator[str]:
    """A detail below a row: its head, and the wrapped message under it."""
    severity, _, rest = _line(head).partition(" ")
    shown = paint_word(severity) if may_colour() else severity
    yield f"  {shown} {rest}".rstrip()
    yield from textwrap.wrap(
        printable(message), WIDTH, initial_indent=" " * 11, subsequent_indent=" " * 11, break_on_hyphens=False
    )


def age(seconds: float | None) -> str:
    """A length of time as kubectl shows ages."""
    if seconds is None:
        return "<unknown>"
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 120:
        rest = f"{whole % 60}s" if minutes < 10 and whole % 60 else ""
        return f"{minutes}m{rest}"
    return f"{hours}h" if hours < 48 else f"{days}d"


def document(kind: str, at: float, **fields: Any) -> dict[str, Any]:
    """The stable JSON of a command: version, kind and when it was made, then its fields."""
    from kubectl_pacto.model.instant import format_instant

    return {"apiVersion": API_VERSION, "kind": kind, "generatedAt": format_instant(at), **fields}


def emit(data: Mapping[str, Any], form: str, *, text: Callable[[], str], names: Iterable[str] = ()) -> str:
    """A document in a form; a table is made by `text`. Ends with a newline unless it is empty."""
    if form == "json":
        return json_text(data) + "\n"
    if form == "yaml":
        from kubectl_pacto.cli.render.plain_yaml import dump

        return dump(dict(data))
    made = "\n".join(map(_line, names)) if form == "name" else text()
    return f"{made}\n" if made else ""
