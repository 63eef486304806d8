# SPDX-License-Identifier: MIT
"""The previous release with its agents and judged applications, then `kubectl pacto upgrade` to this one."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_pacto.model.bounds import STALENESS_INTERVALS
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node_codec import KIND
from tests.acceptance.actions import act
from tests.acceptance.release import AGENTS, LABEL, VALUES, Plugin
from tests.acceptance.scene import World
from tests.acceptance.watcher import Watcher
from tests.cluster.api import Object
from tests.cluster.live import Live
from tests.faults.ground import Ground
from tests.images import previous, runtime
from tests.upgrade.apps import QUIET, scenario
from tests.upgrade.lookout import SELECTOR, Lookout, Moment

# a heartbeat is good for three of them, as everywhere; by default they are 30 s
INTERVAL_SECONDS: Final = 8.0
STALE_SECONDS: Final = STALENESS_INTERVALS * INTERVAL_SECONDS
CRDS: Final = ("pactos", "pactorevisions", "noderuntimeobservations")


@dataclass
class Picture:
    """What was there at one moment."""

    views: dict[str, Object]
    agents: list[Object]
    crds: dict[str, Object]
    record: Object


@dataclass
class Story:
    """One upgrade: before, the second in which the command ended, after; and all between."""

    ground: Ground
    release: previous.Release
    folder: Path
    before: Picture
    begun: float = 0.0
    returned: Picture | None = None
    took: float = 0.0
    ended: float = 0.0
    after: Picture | None = None
    moments: list[Moment] = field(default_factory=list)

    @property
    def live(self) -> Live:
        """The cluster."""
        return self.ground.live

    def values(self, image: str, agents: str = "") -> list[str]:
        """The words that tell the plugin to install these images, of operator and agents."""
        repository, _, tag = image.rpartition(":")
        made: dict[str, Any] = copy.deepcopy(VALUES)
        made["image"] |= {"repository": repository, "tag": tag}
        # what a caller did a while ago still counts, whichever agent saw it
        made["controller"]["kernelEvidence"] = {"recency": "5m"}
        made["nodeAgent"] |= {"image": agents or image, "publishInterval": f"{INTERVAL_SECONDS:g}s"}
        path = self.folder / f"{tag}-{(agents or image).rpartition(':')[2]}.json"
        path.write_text(json.dumps(made))
        return ["-f", str(path)]

    def look(self) -> Picture:
        """What is there now."""
        return picture(self.live)

    def quiet(self) -> None:
        """The guest stops or begins to call."""
        act(self.ground.scene, "signal", {"app": QUIET, "signal": "USR1"})


def picture(live: Live) -> Picture:
    """What is there now."""
    crds = {}
    for name in CRDS:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.pacto.trianalab.io"
        crds[name] = json.loads(live.api.raw("GET", path))
    record = live.api.get("v1", "ConfigMap", "kubectl-pacto-release", "pacto-operator-system") or {}
    views = {node: live.api.get(API_VERSION, KIND, node, AGENTS) or {} for node in live.nodes}
    pods = [pod for pod in live.pods(AGENTS, SELECTOR) if "deletionTimestamp" not in pod["metadata"]]
    return Picture(views, pods, crds, json.loads(record.get("data", {}).get("release", "{}")))


@pytest.fixture(scope="package")
def story(cluster: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Installed as the previous release, judged, upgraded, judged again; taken away at the end."""
    live, folder = cluster, tmp_path_factory.mktemp("upgrade")
    release = previous.previous(folder)
    print(f"previous release: {release.origin}", flush=True)
    live.load(release.archive)
    for node in live.nodes:
        live.api.patch("v1", "Node", node, {"metadata": {"labels": {LABEL: "managed"}}})
    watcher, plugin = Watcher(live.api), Plugin(live.kubeconfig)
    ground = Ground(World(live, watcher, plugin, live.nodes[0]), folder, scenario(live.nodes))
    made = Story(ground, release, folder, Picture({}, [], {}, {}))
    watcher.start()
    try:
        words = made.values(previous.NAME)
        Plugin(live.kubeconfig, release.tree).run("install", *words, "--node-agent", "--timeout", "120s")
        ground.start()
        _upgrade(made)
        yield made
    finally:
        watcher.stop()
        ground.stop()
        plugin.run("uninstall", "--yes", "--delete-crds", "--timeout", "60s", check=False)


def _upgrade(made: Story) -> None:
    """From calm to calm, with a check of everything every few seconds."""
    made.quiet()
    time.sleep(INTERVAL_SECONDS + 1)  # what the guest did is published
    made.ground.calm(time.monotonic())
    made.before = made.look()
    with Lookout(made.live) as lookout, made.ground.poked():
        made.begun = time.monotonic()
        made.ground.world.plugin.run("upgrade", *made.values(runtime.NAME), "--timeout", "150s")
        made.took = time.monotonic() - made.begun
        made.returned = made.look()
        made.ground.calm(made.begun)
        time.sleep(2 * INTERVAL_SECONDS)
        made.ended = time.monotonic()
    made.moments = lookout.moments
    made.after = made.look()
