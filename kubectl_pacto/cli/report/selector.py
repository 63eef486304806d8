# SPDX-License-Identifier: MIT
"""A label selector as kubectl writes it, for objects that no API server selects."""

from __future__ import annotations

import re
from typing import Final

from kubectl_pacto.errors import UsageError
from kubectl_pacto.model.kube import Selector

_KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUAL: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_AMONG: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_THERE: Final = re.compile(rf"(!?)\s*({_KEY})")
_COMMA: Final = re.compile(r",(?![^(]*\))")


def parse_selector(text: str) -> Selector:
    """What `-l` selects; an empty text is the empty selector. Raises UsageError."""
    if not text.strip():
        return Selector()
    return Selector(expressions=tuple(_requirement(part.strip(), text) for part in _COMMA.split(text)))


def _requirement(part: str, text: str) -> tuple[str, str, tuple[str, ...]]:
    if found := _EQUAL.fullmatch(part):
        return found[1], "NotIn" if found[2] == "!=" else "In", (found[3],)
    if found := _AMONG.fullmatch(part):
        values = tuple(value.strip() for value in found[3].split(","))
        return found[1], "In" if found[2] == "in" else "NotIn", values
    if found := _THERE.fullmatch(part):
        return found[2], "DoesNotExist" if found[1] else "Exists", ()
    raise UsageError(f"--selector {text!r}: {part!r} is no KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY or !KEY")
