# SPDX-License-Identifier: MIT
"""The kernel tier under other kernels runs beside the other tests of this folder: it takes minutes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias

import pytest

from tests.kernels import machine, tier
from tests.support.require import require

# All of it but the demo and a storm, which take minutes, where it takes least; and elsewhere what says
# most about a kernel.
CHOSEN: Final[dict[str, tuple[str, ...]]] = {
    "bullseye": tuple(one for one in tier.parts()[0] if one != "tests/kernel/test_storm.py"),
    "bookworm": ("tests/kernel/test_listeners.py",),
    "trixie": ("tests/kernel/test_listeners.py",),
}
SECONDS: Final = 1200  # for a part that takes 450 with the machine for itself

Tiers: TypeAlias = dict[str, "Future[tier.Outcome]"]


@pytest.fixture(scope="session")
def tiers(request: pytest.FixtureRequest) -> Iterator[Tiers]:
    """By suite, what the tier says there. One emulator at a time, beside those of other tests."""
    require("kernels", machine.missing())
    suites = [str(item.callspec.params["suite"]) for item in _who_asks(request.session)]
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        yield {suite: pool.submit(tier.run, suite, CHOSEN[suite], timeout=SECONDS) for suite in suites}
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session", autouse=True)
def _begin(request: pytest.FixtureRequest) -> None:
    """With the first test of this folder, so that they run while the others do."""
    if _who_asks(request.session) and not machine.missing():
        request.getfixturevalue("tiers")


def _who_asks(session: pytest.Session) -> list[pytest.Function]:
    items = [item for item in session.items if isinstance(item, pytest.Function)]
    return [item for item in items if "tiers" in item.fixturenames]
