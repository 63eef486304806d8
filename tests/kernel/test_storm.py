# SPDX-License-Identifier: MIT
"""One pod that connects as fast as it can, to more peers than are kept: it is marked, and no other pod is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubectl_pacto.model import bounds
from kubectl_pacto.model.node import PodReason
from tests.support.agents import Watched, options, watching
from tests.support.hosts import PATIENCE, Host, Pod, until

# to ports that nobody serves, without a pause: eight times as many as are kept of a pod, or nearly all
PORTS = (1024, 60_000)
STORM = (
    "def storm():\n"
    "    while True:\n"
    "        for number in range(1, {ports}):\n"
    "            with socket.socket() as one: one.connect_ex(('127.0.0.1', number))"
)
START = "if os.fork() == 0: storm()"
WELL = 10_000  # connections, at least, that the agent was told of before anything is judged
SOON = PATIENCE / 6  # seconds


@pytest.fixture
def others(host: Host) -> list[Pod]:
    """Pods that mind their own business."""
    made = [host.pod() for _ in range(4)]
    for number, pod in enumerate(made):
        pod.run(f"kept = listen('0.0.0.0', {8000 + number}); serve('127.0.0.1', 9000)")
    return made


@pytest.fixture(params=PORTS)
def storming(
    request: pytest.FixtureRequest, host: Host, others: list[Pod], mapper: str
) -> Iterator[tuple[Watched, Pod]]:
    """An agent, and the pod that is at it already."""
    ports = int(request.param)
    noisy = host.pod()
    noisy.run("listen('0.0.0.0', 7000)")
    noisy.run(STORM.format(ports=ports))
    with watching(options(mapper=mapper, resync=2.0)) as agent:
        for pod in (noisy, *others):
            agent.await_complete(pod.uid)
        noisy.run(START)
        reader = agent.reader
        before = reader.records + reader.spilled
        until(lambda: reader.records + reader.spilled >= before + max(WELL, ports), "a storm")
        yield agent, noisy


def marks(agent: Watched, pod: Pod) -> set[PodReason]:
    """Why a pod is not complete, but for what the kernel skipped: that is the node's, and told as that."""
    reasons = set(agent.known(pod.uid).reasons)
    assert agent.reader.lost == (0, 0, 0, 0), "neither ring, spill map nor table had too little room"
    if agent.view.collection.dropped_events:
        reasons.discard(PodReason.EVENTS_DROPPED)
    return reasons


def await_soon(agent: Watched, pod: Pod, *ports: int) -> None:
    """The pod is published with exactly these listeners, within seconds."""
    until(lambda: agent.ports(pod.uid) == sorted(ports), f"listeners {sorted(ports)}", patience=SOON)


def test_other_pods_listeners_stay_right_and_the_pod_itself_is_marked(
    storming: tuple[Watched, Pod], others: list[Pod], host: Host
) -> None:
    agent, noisy = storming
    until(lambda: marks(agent, noisy) == {PodReason.TRUNCATED}, "the mark of the pod that storms")
    for round_ in range(3):
        for number, pod in enumerate(others):
            inode = pod.number(f"listen('0.0.0.0', {10_000 + 10 * round_ + number})")
            await_soon(agent, pod, 8000 + number, 9000, 10_000 + 10 * round_ + number)
            pod.run(f"close({inode}); connect_many('127.0.0.1', 9000, 7)")
            await_soon(agent, pod, 8000 + number, 9000)
            assert marks(agent, pod) == set(), "complete all the time"
    late = host.pod()
    late.run("listen('0.0.0.0', 8080)")
    agent.await_ports(late.uid, 8080)
    for pod in (*others, late):
        until(lambda: agent.known(pod.uid).baseline_at is not None, "a baseline")  # noqa: B023
        assert marks(agent, pod) == set()
    for pod in others:
        until(lambda: agent.counted(pod.uid, "127.0.0.1", 9000).succeeded == 21, "its own calls")  # noqa: B023
        assert len(agent.known(pod.uid).peers) == 1
    assert agent.ports(noisy.uid) == [7000]
    assert marks(agent, noisy) == {PodReason.TRUNCATED}
    assert len(agent.known(noisy.uid).peers) <= bounds.PEERS_PER_POD
    assert agent.reader.cut > 0


def test_no_listen_event_is_lost_in_the_storm(storming: tuple[Watched, Pod], others: list[Pod]) -> None:
    agent, _ = storming
    for pod in others:
        pod.run("for number in range(50): close(listen('127.0.0.1'))")
    agent.await_publish()
    assert agent.reader.lost == (0, 0, 0, 0), "connections give way to listen events, and to other callers"
