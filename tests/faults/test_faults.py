# SPDX-License-Identifier: MIT
"""Faults on a real cluster: nobody is accused because something else broke, and everything heals.

The short ones run in the cluster tier; PACTO_FAULTS=all runs all of them, as `make faults` does.
"""

from __future__ import annotations

import os

import pytest

from tests.cluster.live import provider_name
from tests.faults.breaks import FAULTS
from tests.faults.conftest import Faults
from tests.faults.ground import Fault
from tests.support.require import require

CHOSEN = os.environ.get("PACTO_FAULTS", "")


def chosen() -> list[Fault]:
    """The faults of this run: all, those that are named, or the short ones."""
    if CHOSEN == "all":
        return list(FAULTS)
    names = CHOSEN.split(",") if CHOSEN else [one.name for one in FAULTS if one.short]
    return [one for one in FAULTS if one.name in names]


@pytest.mark.cluster
@pytest.mark.parametrize("fault", chosen(), ids=lambda one: one.name)
def test_nobody_is_accused_and_everything_heals(faults: Faults, fault: Fault) -> None:
    if fault.local:
        require("cluster", "" if provider_name() == "local" else "needs the cluster of tests/cluster")
    faults.through(fault)
