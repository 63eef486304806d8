# SPDX-License-Identifier: MIT
"""Whether this output is a terminal, and colours for one. Nothing but words tells anything by itself."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Final

# C1 controls, and what turns the direction of writing
_STEERING: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_CODES: Final = {"red": "31", "yellow": "33", "green": "32", "dim": "2", "bold": "1"}
_BY_WORD: Final = {
    **dict.fromkeys(("NonCompliant", "Invalid", "Failed", "Stale", "NoAgent", "error", "failed"), "red"),
    **dict.fromkeys(("Unknown", "Warning", "Degraded", "Partial", "warning", "unknown"), "yellow"),
    **dict.fromkeys(("Compliant", "Running", "Complete", "Reference", "ok"), "green"),
}


def may_colour(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output takes colours: a terminal, unless NO_COLOR or FORCE_COLOR say otherwise."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return is_terminal() and environment.get("TERM", "") != "dumb"


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def paint(text: str, colour: str) -> str:
    """Text in a colour."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def paint_word(word: str) -> str:
    """A word of our vocabulary in its colour, the spaces around it as they are."""
    colour = _BY_WORD.get(word.strip())
    return paint(word, colour) if colour else word


def printable(text: str) -> str:
    """Text whose control characters are spelled out: objects may hold what would steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode() for one in text
    )


def json_text(data: object, indent: int | None = 2) -> str:
    """A value as JSON; characters that steer a terminal are escaped beyond what JSON asks for."""
    import json

    text = json.dumps(data, indent=indent, ensure_ascii=False)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def tell(text: str) -> None:
    """A line about the run, on standard error; nothing in it steers the terminal."""
    if sys.stderr is not None:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


def write(text: str) -> None:
    """To standard output, as it is: click.echo would take colours out that FORCE_COLOR asked for."""
    sys.stdout.write(text)
    sys.stdout.flush()
