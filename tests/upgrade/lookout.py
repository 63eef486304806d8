# SPDX-License-Identifier: MIT
"""What nodes and agents looked like, second by second, and when statuses were Unknown."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node_codec import KIND
from tests.acceptance.release import AGENTS
from tests.acceptance.watcher import Seen
from tests.cluster.api import ApiError, Object
from tests.cluster.live import Live
from tests.cluster.manifests import ready

LEASES: Final = "coordination.k8s.io/v1"
SELECTOR: Final = "app.kubernetes.io/name=pacto-node-agent"
EVERY_SECONDS: Final = 0.3
Span = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """A node at one moment: its heartbeat, since when the agent that publishes runs, its agents by image."""

    renewed: str
    started: str
    agents: frozenset[tuple[str, str, bool]]

    def runs(self, image: str) -> bool:
        """Whether an agent of this image is ready and stays."""
        return any(one[1] == image and one[2] for one in self.agents)


@dataclass(frozen=True)
class Moment:
    """All nodes, at a monotonic time."""

    at: float
    nodes: Mapping[str, Node]


class Lookout:
    """Looks until it is stopped."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.moments: list[Moment] = []

    def __enter__(self) -> Lookout:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            with contextlib.suppress(OSError, ApiError):
                self.moments.append(self.look())

    def look(self) -> Moment:
        """Now."""
        live = self._live
        pods = live.pods(AGENTS, SELECTOR)
        found = {name: _node(live, name, pods) for name in live.nodes}
        return Moment(time.monotonic(), found)


def _node(live: Live, name: str, pods: Sequence[Object]) -> Node:
    lease = live.api.get(LEASES, "Lease", name, AGENTS) or {"spec": {}}
    view = live.api.get(API_VERSION, KIND, name, AGENTS) or {"collection": {}}
    agents = frozenset(
        (pod["metadata"]["name"], image_of(pod), ready(pod) and "deletionTimestamp" not in pod["metadata"])
        for pod in pods
        if pod["spec"].get("nodeName") == name
    )
    return Node(str(lease["spec"].get("renewTime")), str(view["collection"].get("startedAt")), agents)


def image_of(pod: Object) -> str:
    """The image that a pod of one container was told to run."""
    return str(pod["spec"]["containers"][0]["image"])


def longest_silence(moments: Sequence[Moment], node: str) -> float:
    """The longest time in which a node's heartbeat was not seen to move, in seconds."""
    moved = [moments[0].at]
    for before, now in pairwise(moments):
        if before.nodes[node].renewed != now.nodes[node].renewed:
            moved.append(now.at)
    moved.append(moments[-1].at)
    return max((later - earlier for earlier, later in pairwise(moved)), default=0.0)


def unknown(seen: Sequence[Seen], begun: float, ended: float) -> list[Span]:
    """When a status was Unknown, status by status, in seconds from `begun`, none past `ended`."""
    spans: list[Span] = []
    for number, one in enumerate(seen):
        if one.status.get("contractStatus") != "Unknown" or one.at > ended:
            continue
        until = seen[number + 1].at if number + 1 < len(seen) else ended
        spans.append((max(0.0, one.at - begun), min(until, ended) - begun))
    return spans


def together(one: Iterable[Span], other: Iterable[Span]) -> list[Span]:
    """When both were so."""
    others = list(other)
    met = [(max(a, c), min(b, d)) for a, b in one for c, d in others]
    return [(begin, end) for begin, end in met if begin < end]
