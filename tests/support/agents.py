# SPDX-License-Identifier: MIT
"""A real agent beside a test: in a thread with a sink in memory, or as the process it is in a cluster."""

from __future__ import annotations

import ctypes
import errno
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kubectl_pacto.model.node import NodeRuntimeObservation, Peer, PodView
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent.agent import Agent
from pacto_agent.budget import unpacked
from pacto_agent.config import Options
from tests.support.hosts import PATIENCE, until

BPF_SYSCALL: Final = {"x86_64": 321, "aarch64": 280}
GET_FD_BY_ID: Final = {"prog_id": 13, "map_id": 14, "link_id": 30}


class MemorySink:
    """Holds the last object and Lease, and how many of each there were."""

    requests: int | None = None

    def __init__(self) -> None:
        self.object: dict[str, Any] | None = None
        self.lease: dict[str, Any] | None = None
        self.writes = 0
        self.renewals = 0

    def load(self) -> dict[str, Any] | None:
        """What an agent before left."""
        return self.object

    def put(self, observation: dict[str, Any]) -> None:
        """Hold this object."""
        self.object = unpacked(observation)
        self.writes += 1

    def renew(self, lease: dict[str, Any]) -> bool:
        """Hold this Lease."""
        self.lease = lease
        self.renewals += 1
        return True


class Watched:
    """A running agent, seen through what it publishes."""

    def __init__(self, sink: MemorySink, agent: Agent) -> None:
        self.sink = sink
        self._agent = agent

    @property
    def view(self) -> NodeRuntimeObservation:
        """The object published last, decoded as the operator does."""
        assert self.sink.object is not None, "nothing was published"
        return decode_node(self.sink.object)

    def pod(self, uid: str) -> PodView | None:
        """One pod of the last object."""
        if self.sink.object is None:
            return None
        return next((pod for pod in self.view.pods if pod.uid == uid), None)

    def known(self, uid: str) -> PodView:
        """One pod that must be there."""
        found = self.pod(uid)
        assert found is not None, f"no pod {uid}"
        return found

    def ports(self, uid: str) -> list[int]:
        """The ports a pod listens on; empty also when it is unknown."""
        found = self.pod(uid)
        return [listener.port for listener in found.listeners] if found else []

    def peer(self, uid: str, address: str, port: int) -> Peer:
        """What is known of one peer; an unknown one has no connections."""
        found = self.pod(uid)
        peers = found.peers if found else ()
        return next((one for one in peers if (one.address, one.port) == (address, port)), Peer(address, port))

    def counted(self, uid: str, address: str, port: int) -> Peer:
        """peer(), to wait for a count: the next publish is written also where counts alone moved."""
        self._agent._publisher._held = None
        return self.peer(uid, address, port)

    @property
    def unattributed(self) -> int:
        """Events that nothing names, now: in the view such counters only ride along with a change."""
        return self._agent._attribution.unattributed

    @property
    def foreign(self) -> int:
        """Foreign events, now."""
        return self._agent._view.foreign_events

    @property
    def reader(self) -> Any:
        """The native reader, with its counters."""
        tracer = self._agent._tracer
        assert tracer is not None
        return tracer._reader

    def lose(self, events: int) -> None:
        """Count events as the kernel's skipped runs are counted."""
        tracer = self._agent._tracer
        assert tracer is not None
        real = tracer.lost
        tracer.lost = lambda: (real()[0], real()[1] + events)  # type: ignore[method-assign]

    def await_complete(self, uid: str) -> None:
        """Wait until the pod's view is complete."""
        until(lambda: (pod := self.pod(uid)) and pod.complete, f"a complete view of pod {uid}")

    def await_ports(self, uid: str, *ports: int) -> None:
        """Wait until the pod listens on exactly these."""
        until(
            lambda: self.ports(uid) == sorted(ports),
            f"listeners {sorted(ports)} of pod {uid}",
        )

    def await_publish(self, times: int = 2) -> None:
        """Wait for this many more publish intervals."""
        wanted = self.sink.renewals + times
        until(lambda: self.sink.renewals >= wanted, "the next publish interval")


def options(*, mapper: str = "auto", resync: float = 3600.0, **more: Any) -> Options:
    """A quick agent whose resyncs come from events alone, unless asked for more often."""
    return Options(node_name="test-node", publish_interval=0.2, resync_interval=resync, mapper=mapper, **more)


@contextmanager
def watching(chosen: Options, sink: MemorySink | None = None) -> Iterator[Watched]:
    """An agent in a thread of this process until the block ends."""
    held = sink or MemorySink()
    before = held.renewals
    stop = threading.Event()
    agent = Agent(chosen, held, stop)
    thread = threading.Thread(target=agent.run, name="agent")
    try:
        agent.open()
        thread.start()
        until(lambda: held.renewals > before, "the first publish")
        yield Watched(held, agent)
    finally:
        stop.set()
        if thread.ident is not None:
            thread.join(PATIENCE)
        agent.close()


def bpf_objects(pid: int) -> set[tuple[str, int]]:
    """The BPF programs, maps and links that a process holds: (what, id)."""
    found = set()
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = info.read_text()
        except OSError:
            continue
        for line in text.splitlines():
            what, _, number = line.partition(":")
            if what in GET_FD_BY_ID:
                found.add((what, int(number)))
    return found


def exists(what: str, number: int) -> bool:
    """Whether the kernel still has a BPF object of this id."""
    attributes = (ctypes.c_uint32 * 32)(number)
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(
        BPF_SYSCALL[platform.machine()], GET_FD_BY_ID[what], attributes, ctypes.sizeof(attributes)
    )
    if result >= 0:
        libc.close(result)
        return True
    assert ctypes.get_errno() == errno.ENOENT, f"{what} {number}: {errno.errorcode[ctypes.get_errno()]}"
    return False
