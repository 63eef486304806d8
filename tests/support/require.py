# SPDX-License-Identifier: MIT
"""Skips that say why, and that fail where the tier was promised.

A test that needs more than Python asks here first. On a developer's machine the answer is a skip
with its reason; where PACTO_PROMISED names the tier, as CI does, nothing may be missing.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

import pytest

TIERS: Final = ("unit", "native", "kernel", "kernels", "cluster", "packaging", "chart", "browser")


def promised() -> frozenset[str]:
    """The tiers of PACTO_PROMISED; a name that is no tier would promise nothing, so it is refused."""
    names = frozenset(
        name.strip() for name in os.environ.get("PACTO_PROMISED", "").split(",") if name.strip()
    )
    if unknown := names - frozenset(TIERS):
        raise pytest.UsageError(
            f"PACTO_PROMISED: no tier {', '.join(sorted(unknown))}; of: {', '.join(TIERS)}"
        )
    return names


def require(tier: str, missing: str) -> None:
    """Go on when `missing` is empty; else skip with it as the reason, or fail where promised."""
    if tier not in TIERS:
        raise ValueError(f"no tier {tier!r}")
    if not missing:
        return
    if tier in promised():
        pytest.fail(f"{tier} was promised, but: {missing}", pytrace=False)
    pytest.skip(f"{tier}: {missing}")


def require_root(tier: str) -> None:
    """The test needs root on Linux."""
    if sys.platform != "linux":
        require(tier, "needs Linux")
    require(tier, "" if os.geteuid() == 0 else "needs root")


def require_programs(tier: str, *programs: str) -> None:
    """The test starts these programs."""
    absent = [program for program in programs if shutil.which(program) is None]
    require(tier, f"not on PATH: {', '.join(absent)}" if absent else "")
