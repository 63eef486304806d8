# SPDX-License-Identifier: MIT
"""What an API server makes of a patch."""

from __future__ import annotations

from typing import Any


def merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch applied, as RFC 7386 has it."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found
