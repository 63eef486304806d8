# SPDX-License-Identifier: MIT
"""In which order findings are listed, wherever a person reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SEVERITIES: Final = ("error", "unknown", "warning", "info")


def severity_rank(finding: Mapping[str, Any]) -> tuple[int, str]:
    """Sorts findings: the worst first, then by code."""
    severity = finding.get("severity")
    return (SEVERITIES.index(severity) if severity in SEVERITIES else 0, str(finding.get("code")))
