# SPDX-License-Identifier: MIT
"""Durations as Go and Kubernetes write them: 30s, 2m, 1h30m, 500ms."""

from __future__ import annotations

import re
from typing import Final

from kubectl_pacto.model.bounds import LONGEST_INTERVAL_SECONDS, SHORTEST_INTERVAL_SECONDS

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")


def parse_duration(text: str) -> float:
    """Seconds of a duration, never negative; raises ValueError naming the text and the form."""
    if text == "0":
        return 0.0
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 30s, 2m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def parse_interval(text: str, shortest: float = SHORTEST_INTERVAL_SECONDS) -> float:
    """Seconds of a node agent's interval; raises ValueError naming the text, and the bounds if it is out."""
    seconds = parse_duration(text)
    if not shortest <= seconds <= LONGEST_INTERVAL_SECONDS:
        raise ValueError(f"{text} is not between {shortest:g}s and {LONGEST_INTERVAL_SECONDS / 3600:g}h")
    return seconds
