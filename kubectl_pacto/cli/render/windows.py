# SPDX-License-Identifier: MIT
"""Since when something is absent: still waiting for its window, or standing as a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubectl_pacto.cli.terminal import printable

Raw = Mapping[str, Any]


def window_lines(windows: Iterable[Raw], findings: Iterable[Raw]) -> Iterator[str]:
    """One line for each of `status.observationWindows`; an `unknown` finding does not stand, it waits."""
    for subject, since, stands in read_windows(windows, findings):
        yield printable(f"  {'stands' if stands else 'waiting':<8} {subject} since {since}")


def read_windows(windows: Iterable[Raw], findings: Iterable[Raw]) -> Iterator[tuple[str, str, bool]]:
    """Of each window its subject, its beginning, and whether it is a finding by now."""
    standing = {one.get("subject") for one in findings if one.get("severity") != "unknown"}
    for window in windows:
        subject = f"{window['kind']}/{window['subject']}"
        yield subject, str(window["firstObservedNegativeAt"]), subject in standing
