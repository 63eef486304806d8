# SPDX-License-Identifier: MIT
"""`--set` as Helm reads it: `a.b=1,c={x,y}`, a backslash before what would part or end something.

`--set-string` is the same, and every value is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubectl_pacto.errors import UsageError

_INT: Final = re.compile(r"-?[1-9][0-9]{0,17}|0")
_WORDS: Final = {"true": True, "false": False, "null": None}


def parse_settings(text: str, *, as_text: bool = False) -> Iterator[dict[str, Any]]:
    """Each setting of one `--set`, or with `as_text` `--set-string`, as nested mappings, in their order.

    Raises UsageError.
    """
    for setting in _split(text, ",", braces=True):
        yield _parse(setting, text, _plain if as_text else _scalar)


def _parse(setting: str, whole: str, read: Callable[[str], Any]) -> dict[str, Any]:
    path, *rest = _split(setting, "=")
    names = [_plain(name) for name in _split(path, ".")]
    if not rest or not all(names):
        raise UsageError(f"--set {whole}: must be NAME.NAME=VALUE, as in nodeAgent.enabled=true")
    if any(name.endswith("]") for name in names):
        raise UsageError(
            f"--set {whole}: an index is not supported: write a list as {{a,b}}, or in a file (-f)"
        )
    value = _value("=".join(rest), read)
    for name in reversed(names):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def _value(text: str, read: Callable[[str], Any]) -> Any:
    if text.startswith("{") and text.endswith("}"):
        inside = text[1:-1]
        return [read(part) for part in _split(inside, ",")] if inside else []
    return read(text)


def _scalar(text: str) -> Any:
    """As Helm types it: true, false, null and whole numbers; all else, 007 and 1.30 too, is text."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INT.fullmatch(text) else _plain(text)


def _split(text: str, mark: str, *, braces: bool = False) -> list[str]:
    """The parts between marks that no backslash precedes and, on demand, no braces hold; backslashes stay."""
    parts, start, depth, at = [], 0, 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if braces and text[at] in "{}":
            depth += 1 if text[at] == "{" else -1
        elif text[at] == mark and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
