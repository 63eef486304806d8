# SPDX-License-Identifier: MIT
"""Since when something is absent: what is a finding already does not wait for one."""

from __future__ import annotations

import pytest

from kubectl_pacto.cli.render.windows import window_lines

WINDOW = {"kind": "interface", "subject": "api", "firstObservedNegativeAt": "2026-10-18T09:09:44Z"}


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        ({"severity": "error", "subject": "interface/api"}, "  stands   interface/api since"),
        ({"severity": "unknown", "subject": "interface/api"}, "  waiting  interface/api since"),
        ({"severity": "error", "subject": "interface/other"}, "  waiting  interface/api since"),
        ({"severity": "error"}, "  waiting  interface/api since"),
    ],
)
def test_what_is_a_finding_does_not_wait_for_one(finding: dict[str, str], said: str) -> None:
    (line,) = window_lines([WINDOW], [finding])
    assert line == f"{said} 2026-10-18T09:09:44Z"
