# SPDX-License-Identifier: MIT
"""In which order findings are listed wherever a person reads them, and what comes after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SEVERITIES: Final = ("error", "unknown", "warning", "info")
# what a screen with findings ends with
EXPLAINED: Final = "`kubectl pacto explain CODE` says what a finding means and what to do."


def severity_rank(finding: Mapping[str, Any]) -> tuple[int, str]:
    """Sorts findings: the worst first, then by code."""
    severity = finding.get("severity")
    return (SEVERITIES.index(severity) if severity in SEVERITIES else 0, str(finding.get("code")))
