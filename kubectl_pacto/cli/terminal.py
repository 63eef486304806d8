# SPDX-License-Identifier: MIT
"""Whether this output is a terminal, and colours for one. Nothing but words tells anything by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

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


def write(text: str) -> None:
    """To standard output, as it is: click.echo would take colours out that FORCE_COLOR asked for."""
    sys.stdout.write(text)
    sys.stdout.flush()
