# SPDX-License-Identifier: MIT
"""The release with agents, a window of ten seconds, and the applications that run through all faults."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.conftest import KERNEL, three_nodes
from tests.acceptance.release import Plugin
from tests.acceptance.scene import World
from tests.acceptance.watcher import Watcher
from tests.cluster.live import NODES, Live
from tests.faults import report
from tests.faults.breaks import FAULTS
from tests.faults.ground import Fault, Ground, Told

__all__ = ["three_nodes"]
WINDOW = "10s"


@dataclass
class Faults:
    """One run: faults one after the other, on the same ground."""

    ground: Ground
    begun: float = field(default_factory=time.monotonic)
    told: list[Told] = field(default_factory=list)

    def through(self, fault: Fault) -> Told:
        """One fault; raises what went wrong."""
        told = self.ground.through(fault)
        self.told.append(told)
        print(report.line(told), flush=True)
        return told


@pytest.fixture(scope="package")
def faults(three_nodes: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    """Installed, deployed and calm."""
    live = three_nodes
    watcher = Watcher(live.api)
    folder = tmp_path_factory.mktemp("faults")
    world = World(live, watcher, Plugin(live.kubeconfig), live.provider.nodes[len(NODES)])
    made = Faults(Ground(world, folder))
    watcher.start()
    try:
        world.plugin.install(
            folder / "values.json", "--node-agent", "--set", f"controller.stabilizationWindow={WINDOW}"
        )
        made.ground.start()
        yield made
    finally:
        watcher.stop()
        made.ground.stop()
        world.plugin.run("uninstall", "--yes", "--delete-crds", "--timeout", "60s", check=False)
    path = os.environ.get("PACTO_FAULTS_DOCS")
    if path and {one.fault.name for one in made.told} >= {one.name for one in FAULTS}:
        where = f"{os.cpu_count()} cores, Linux {KERNEL}, {live.provider.provider}"
        Path(path).write_text(report.document(made.told, where=where, took=time.monotonic() - made.begun))
