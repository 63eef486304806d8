# SPDX-License-Identifier: MIT
"""The release on a cluster, first without agents and then with them, and all scenarios at once."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance import report
from tests.acceptance.actions import act, stop_agent
from tests.acceptance.release import INTERVAL_SECONDS, LABEL, WINDOW_SECONDS, Plugin
from tests.acceptance.scene import Row, Scene, World
from tests.acceptance.table import Scenario, scenarios
from tests.acceptance.watcher import Watcher
from tests.cluster.cluster import remove_node
from tests.cluster.live import NODES, Live, LocalCluster
from tests.images import runtime, workloads

AT_ONCE: Final = int(os.environ.get("PACTO_ACCEPTANCE_AT_ONCE", "14"))
EXTRA: Final = "node-c"
KERNEL: Final = ".".join(platform.release().split(".")[:2])


@dataclass
class Run:
    """All scenarios of a run: started together, waited for one by one."""

    world: World
    values: Path
    begun: float = field(default_factory=time.monotonic)
    rows: list[Row] = field(default_factory=list)
    turned_on: float = 0.0
    turned_off: float = 0.0
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE))
    _started: dict[str, Future[list[Row]]] = field(default_factory=dict)

    def start(self, chosen: Sequence[Scenario]) -> None:
        """Begin to carry scenarios out, the first waves first."""
        for one in sorted(chosen, key=lambda item: item.wave):
            if one.id not in self._started:
                self._started[one.id] = self._pool.submit(Scene(self.world, one).run, act)

    def wait(self, chosen: Sequence[Scenario]) -> None:
        """Until these are over, however they ended."""
        wait([self._started[one.id] for one in chosen])

    def result(self, scenario: Scenario) -> list[Row]:
        """The rows of one; raises what went wrong in it."""
        rows = self._started[scenario.id].result()
        for row in rows:
            print(report.line(row))
        self.rows += rows
        return rows

    def add(self, name: str, proves: Sequence[str], cause: str, verdict: str, seconds: float) -> None:
        """A row that a test has made."""
        row = Row(name, tuple(proves), cause, verdict, seconds)
        print(report.line(row))
        self.rows.append(row)

    def close(self) -> None:
        """Wait for what runs, and begin nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@pytest.fixture(scope="package")
def three_nodes(cluster: Live) -> Iterator[Live]:
    """Two nodes for agents of the operator's, and one whose agent the scenarios run.

    The third goes again: other tests expect an agent on each of two nodes.
    """
    provider = cluster.provider
    added = len(provider.nodes) <= len(NODES)
    if added:
        provider.add_nodes([*NODES, EXTRA])
        for archive in (workloads.small_archive(), runtime.archive()):
            cluster.load(archive)
    cluster.load(workloads.real_archive())
    for number, node in enumerate(provider.nodes):
        label = "managed" if number < len(NODES) else "mine"
        cluster.api.patch("v1", "Node", node, {"metadata": {"labels": {LABEL: label}}})
    yield cluster
    if added and isinstance(provider, LocalCluster):
        remove_node(provider.cluster, EXTRA)


@pytest.fixture(scope="package")
def run(
    three_nodes: Live, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Run]:
    """The operator alone is installed; `with_agents` installs the rest."""
    live = three_nodes
    watcher = Watcher(live.api)
    world = World(live, watcher, Plugin(live.kubeconfig), live.provider.nodes[len(NODES)])
    made = Run(world, tmp_path_factory.mktemp("release") / "values.json")
    watcher.start()
    try:
        made.world.plugin.install(made.values)
        yield made
    finally:
        made.close()
        watcher.stop()
        stop_agent(live)
        world.plugin.run("uninstall", "--yes", "--delete-crds", "--timeout", "60s", check=False)
    _keep(made, request.session)


def _keep(made: Run, session: pytest.Session) -> None:
    """Write the page, where it was asked for and every scenario of the tables is in it."""
    path = os.environ.get("PACTO_ACCEPTANCE_DOCS")
    complete = {one.id for one in scenarios()} <= {row.scenario for row in made.rows}
    if path and complete and not session.testsfailed:
        where = f"{os.cpu_count()} cores, Linux {KERNEL}, {made.world.live.provider.provider}"
        took = time.monotonic() - made.begun
        text = report.document(
            made.rows, where=where, took=took, interval=INTERVAL_SECONDS, window=WINDOW_SECONDS
        )
        Path(path).write_text(text)
