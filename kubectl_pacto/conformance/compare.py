# SPDX-License-Identifier: MIT
"""Whether two statuses say the same, times aside: what is written anew only once per interval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

# times of the check itself, and the generation that conditions repeat
_TIMES: Final = frozenset({"lastReconciledAt", "lastTransitionTime", "observedAt", "detectedAt"})
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def differs_beyond_times(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a person would read the two statuses differently.

    When a window opened counts: what is not written is not remembered.
    """
    return bool(_essence(before) != _essence(after))


def _essence(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _essence(item, key) for key, item in value.items() if key not in _TIMES}
    if isinstance(value, list | tuple):
        return [_essence(item) for item in value]
    if isinstance(value, str) and name == "message":
        return _INSTANT.sub("", value)
    return value
