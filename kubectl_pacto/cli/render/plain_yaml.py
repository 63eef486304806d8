# SPDX-License-Identifier: MIT
"""YAML for people: no anchors where two objects share a part, keys as they come."""

from __future__ import annotations

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Writes a shared part each time anew."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 -- the base class has the name
        """Never an alias."""
        return True


def dump(data: Any, *, sort: bool = False) -> str:
    """The text of one document."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=sort, allow_unicode=True, width=100))
