# SPDX-License-Identifier: MIT
"""What is rendered: the outcome of one check."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_pacto.conformance.check import Checked


@dataclass(frozen=True, slots=True)
class Result:
    """One Pacto and the outcome of its check."""

    namespace: str
    name: str
    checked: Checked
