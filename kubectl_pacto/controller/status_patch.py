# SPDX-License-Identifier: MIT
"""The smallest merge patch that writes a status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
