# SPDX-License-Identifier: MIT
"""The whole tier needs the compiled modules; their absence is told once, by name."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.support.require import require

MODULES = ("ring", "procnet", "procfs", "_libbpf")


@pytest.fixture(autouse=True, scope="session")
def _compiled() -> None:
    absent = [name for name in MODULES if find_spec(f"pacto_native.{name}") is None]
    require("native", f"not compiled: {', '.join(absent)} (make build)" if absent else "")
