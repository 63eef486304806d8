# SPDX-License-Identifier: MIT
"""The kernel tier under other kernels; and what is read out of pytest's last lines there."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster.layout import ClusterError
from tests.kernels import debian, machine, tier
from tests.kernels.conftest import Tiers
from tests.kernels.machine import Result
from tests.support.require import require

pytestmark = pytest.mark.kernels

OUTPUT = """\
5.10.0-34-cloud-amd64
..s.F                                                                    [100%]
=========================== short test summary info ============================
SKIPPED [2] tests/kernel/conftest.py:61: kernel: without MPTCP: Protocol not supported
SKIPPED [1] tests/kernel/test_mappers.py:29: kernel: nobody knows
FAILED tests/kernel/test_loss.py::test_one - AssertionError: 12 passed in 1 s
1 failed, 206 passed, 3 skipped, 4 deselected, 1 error in 412.34s (0:06:52)
"""


def test_counts_reasons_and_the_release_are_read() -> None:
    outcome = tier.read("bullseye", Result(1, OUTPUT, "", 421.0))
    assert (outcome.release, outcome.passed, outcome.failed) == ("5.10.0-34-cloud-amd64", 206, 2)
    assert (outcome.left_out, outcome.seconds) == (4, 421.0)
    assert outcome.skipped == Counter(
        {"kernel: without MPTCP: Protocol not supported": 2, "kernel: nobody knows": 1}
    )
    assert "206 passed, 2 failed, 3 skipped, 4 left out, 421 s" in outcome.line()


def test_a_skip_that_the_kernel_gives_no_cause_for_is_unexpected() -> None:
    assert tier.read("bullseye", Result(1, OUTPUT, "", 1.0)).unexpected() == ["kernel: nobody knows"]
    assert len(tier.read("trixie", Result(1, OUTPUT, "", 1.0)).unexpected()) == 2


def test_no_result_is_no_success() -> None:
    with pytest.raises(ClusterError, match="said no result"):
        tier.read("trixie", Result(0, "6.12\nEverything 5 passed, or so\n", "", 1.0))


@pytest.mark.parametrize("suite", debian.SUITES)
def test_the_kernel_tier_holds_there_too(suite: str, tiers: Tiers) -> None:
    """What fits into CI; `make test-kernels-full` runs all of it on each."""
    require("kernels", machine.missing())
    outcome = tiers[suite].result()
    print(outcome.line())
    assert not outcome.failed, outcome.output
    assert not outcome.unexpected(), outcome.output
    assert outcome.passed > 20, outcome.output
