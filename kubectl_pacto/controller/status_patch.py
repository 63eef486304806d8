# SPDX-License-Identifier: MIT
"""What of a status is news, and the smallest merge patch that writes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# a window's beginning is no such time: it is what the next check needs to know
TIMES: Final = frozenset({"lastReconciledAt", "observedAt", "detectedAt"})


def timeless(value: Any) -> Any:
    """A status without the times that move with every check."""
    if isinstance(value, Mapping):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list | tuple):
        return [timeless(inner) for inner in value]
    return value


def is_news(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether anything but a time differs."""
    return bool(timeless(before) != timeless(after))


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch from one object to another: fields that went are null, lists whole."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif old != value or key not in before:
            patch[key] = value
    return patch
