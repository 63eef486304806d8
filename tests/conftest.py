# SPDX-License-Identifier: MIT
"""What holds for every test: promised tiers, reproducible examples, nobody's own cluster."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

from tests.support.require import promised

# No deadline: a shared machine's time says nothing. A failure prints what reproduces it.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, max_examples=300)
settings.load_profile("ci" if os.environ.get("PACTO_PROMISED") else "default")


pytest_plugins = ("tests.cluster.fixtures",)

# A shell that runs this in the background leaves Ctrl-C ignored, and every process that a test starts
# would inherit that: a test that interrupts one would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """One switch for all golden files: what they hold is then for a reviewer to read."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_report_header() -> str:
    """Says what may not be skipped in this run."""
    return f"promised tiers: {', '.join(sorted(promised())) or 'none'}"


@pytest.fixture(autouse=True)
def _no_current_context(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that forgets to name its cluster finds none, never the developer's current one."""
    if "cluster" not in request.keywords:
        monkeypatch.setenv("KUBECONFIG", os.devnull)
