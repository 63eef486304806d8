# SPDX-License-Identifier: MIT
"""Whether the agent's memory grows with time: `python -m tests.bench.churn`.

Two lives of a node, each in a process of its own, with the allocator set as the DaemonSet sets it:
10,000 publishes of 60 pods with 20 peers each whose times move, so that each is a change; and 5,000
pods that come, call, are mapped, and go. Ratios are to the first quarter, when all has been used once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from kubectl_pacto.model.node import FailureReason, NodeRuntimeObservation
from pacto_agent.attribution import Attribution
from pacto_agent.flows import Connection, ConnectionSums, ListenEvent, ListeningSocket, Sockets
from pacto_agent.health import Health
from pacto_agent.podmap import Place, PodMap
from pacto_agent.publish import Publisher
from pacto_agent.sinks.file import FileSink
from pacto_agent.view import View

PUBLISHES: Final = int(os.environ.get("PACTO_BENCH_PUBLISHES", "10000"))
SHORT_LIVED: Final = int(os.environ.get("PACTO_BENCH_PODS", "5000"))
PODS: Final = 60
PEERS: Final = 20
RENEWED: Final = 5  # pods that go, and come, from one resync to the next
INTERVAL: Final = 30.0
BEGINNING: Final = 1_800_000_000.0
NAMESPACES: Final = 500  # inodes of namespaces are used again
MALLOC: Final = {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}


def place(number: int) -> Place:
    """Where the pod of this number lives, and no other ever."""
    return Place(
        uid=f"{number:08x}-0000-4000-8000-000000000000",
        netns=4_026_532_000 + number % NAMESPACES,
        pids=(number + 2,),
        started=number,
        cookie=number + 1,
        by_cgroup=True,
    )


def pod_map(numbers: Iterable[int]) -> PodMap:
    """The map of these pods."""
    places = {number: place(number) for number in numbers}
    return PodMap(
        places={one.uid: one for one in places.values()},
        owners={one.netns: one.uid for one in places.values()},
        cgroup_pods={100_000 + number: one.uid for number, one in places.items()},
        namespaces=frozenset(one.netns for one in places.values()),
        processes=4 * len(places),
    )


def listening(number: int) -> ListeningSocket:
    """The one listener of a pod."""
    return ListeningSocket(1_000_000 + number, "0.0.0.0", 8080, None, 100_000 + number)


def listen(number: int, *, began: bool) -> ListenEvent:
    """A pod's listener begins, or ends."""
    where = place(number)
    return ListenEvent(100_000 + number, where.netns, began, listening(number), where.cookie)


def call(number: int, peer: int, now: float) -> ConnectionSums:
    """Calls of a pod to one of its peers; one peer in eight refuses now and then."""
    where, failed = place(number), int(peer % 8 == 0)
    return ConnectionSums(
        cgroup_id=100_000 + number,
        netns=where.netns,
        address=f"10.96.{number % 250}.{peer}",
        port=5432,
        succeeded=3,
        failed=failed,
        aborted=0,
        last_success=now - peer / 100,
        last_failure=now - 1 if failed else None,
        reason=FailureReason.REFUSED if failed else FailureReason.NONE,
        cookie=where.cookie,
    )


class Node:
    """What the agent is made of behind its tracer and its mapper."""

    def __init__(self, output: str) -> None:
        """`output`: the file that it publishes to."""
        self.view = View()
        self.attribution = Attribution(self.view)
        self.now = BEGINNING
        self._health = Health(started_at=BEGINNING, connections_since=BEGINNING)
        self._publisher = Publisher(FileSink(output), INTERVAL)

    def resync(self, numbers: Iterable[int]) -> None:
        """These pods are there now, each with a listener and a connection that is open."""
        pods = list(numbers)
        self.view.begin_resync()
        self.attribution.begin_map()
        self.view.set_map(pod_map(pods))
        open_now = (Connection("10.96.0.250", 5432),)
        self.view.end_resync(
            {place(number).uid: Sockets((listening(number),), open_now) for number in pods}, self.now
        )
        self._health.resynced(self.now, dropped_meanwhile=False)
        self.attribution.retry(self.now)

    def calls(self, numbers: Iterable[int]) -> None:
        """Each of these pods calls each of its peers."""
        self.attribution.connections(
            (call(number, peer, self.now) for number in numbers for peer in range(1, PEERS)), self.now
        )

    def publish(self) -> None:
        """A publish interval is over."""
        self.now += INTERVAL
        self.view.prune(self.now)
        self._health.unattributed_events = self.attribution.unattributed
        observation = NodeRuntimeObservation(
            name="bench",
            node_name="bench",
            last_published=self.now,
            collection=self._health.collection(),
        )
        self._publisher.publish(observation, self.now, vouch=True, pods=self.view.snapshot(self.now))
        assert not self._publisher.problem


def publishes(node: Node) -> Iterator[int]:
    """The same pods for ever; one step is a publish."""
    node.resync(range(PODS))
    while True:
        node.calls(range(PODS))
        node.publish()
        yield 1


def short_lived(node: Node) -> Iterator[int]:
    """A few pods of the node's go and others come; one step is so many pods."""
    first = 0
    while True:
        new = range(first + PODS - RENEWED, first + PODS)
        # what a new pod does first comes before the map that knows it
        node.attribution.listens(listen(number, began=True) for number in new)
        node.calls(new)
        node.resync(range(first, first + PODS))
        gone = range(first, first + RENEWED)
        node.attribution.listens(listen(number, began=False) for number in gone)
        node.publish()
        first += RENEWED
        node.resync(range(first, first + PODS - RENEWED))
        # and what a pod does last may be told when it is gone from the map
        node.attribution.connections((call(number, 1, node.now) for number in gone), node.now)
        yield RENEWED


def resident_mib() -> float:
    """This process's memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def live(kind: Callable[[Node], Iterator[int]], count: int, what: str) -> None:
    """Live `count` steps' worth; print what was resident before, and after each quarter."""
    with tempfile.TemporaryDirectory() as directory:
        output = f"{directory}/view.json"
        before, quarters, done = resident_mib(), [], 0
        node = Node(output)
        steps = kind(node)
        for quarter in range(1, 5):
            while done < count * quarter / 4:
                done += next(steps)
            quarters.append(resident_mib())
        size = Path(output).stat().st_size
    after = ", ".join(f"{mib:.1f} ({mib / quarters[0]:.3f})" for mib in quarters)
    held = f"{len(node.view.snapshot(node.now))} pods, {size} bytes at the end"
    print(f"{done} {what}: {before:.1f} MiB before; after each quarter {after}; {held}", flush=True)


LIVES: Final[dict[str, Callable[[], None]]] = {
    "publishes": lambda: live(publishes, PUBLISHES, "publishes"),
    "pods": lambda: live(short_lived, SHORT_LIVED, "short-lived pods"),
}


def main(names: list[str]) -> int:
    """Live the one that is named, or start a process for each."""
    for name in names:
        LIVES[name]()
    if not names:
        for name in LIVES:
            command = [sys.executable, "-m", "tests.bench.churn", name]
            subprocess.run(command, check=True, env={**os.environ, **MALLOC})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
