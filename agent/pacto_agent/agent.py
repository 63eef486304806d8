# SPDX-License-Identifier: MIT
"""One node's agent: collect events, resync, publish, until stopped. Wires the parts, judges nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import Final

from kubectl_pacto import __version__
from kubectl_pacto.errors import (
    AttachFailed,
    MalformedObject,
    PactoError,
    ResyncFailed,
    RingBufferFailed,
    SinkFailed,
)
from kubectl_pacto.model.bounds import PEER_RETENTION_SECONDS, READER_SILENCE_SECONDS
from kubectl_pacto.model.node import CollectionReason, NodeInfo, NodeRuntimeObservation
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent.attribution import Attribution
from pacto_agent.config import Options
from pacto_agent.flows import Sockets
from pacto_agent.health import Health, PerMinute
from pacto_agent.lookout import GAP_SECONDS, Lookout
from pacto_agent.mapper import Mapper, open_mapper
from pacto_agent.podmap import PodMap
from pacto_agent.podscan import CgroupTree, find_tree, pod_uids
from pacto_agent.publish import Publisher, Sink
from pacto_agent.tracer import Tracer, open_tracer
from pacto_agent.view import View

TICK_SECONDS: Final = 1.0
EARLY_RESYNC_SECONDS: Final = 0.5  # the debounce of a resync that an unknown event asks for
LOOK_SECONDS: Final = 2.0  # between looks for new pods
REST: Final = 4.0  # between resyncs at least, times the CPU that the last one took: a fifth at most
SPREAD: Final = 2.0  # rest this many times as long as a namespace took to read
SPREAD_SECONDS: Final = 0.05
UNSPREAD_NAMESPACES: Final = 8
LAST_SECONDS: Final = 2.5  # that the last publish may take; a pod has ten to end


class Agent:
    """The parts of a running agent; `close` may be called twice."""

    def __init__(self, options: Options, sink: Sink, stop: threading.Event) -> None:
        self._options = options
        self._stop = stop
        self._view = View()
        self._attribution = Attribution(self._view)
        self._health = Health(started_at=time.time())
        self._sink = sink
        self._requests = PerMinute()
        self._publisher = Publisher(sink, options.publish_interval)
        self._tree: CgroupTree = find_tree(options.cgroup_root)
        self._tracer: Tracer | None = None
        self._mapper: Mapper = self._proc_mapper()
        self._lost = (0, 0)
        self._losses = 0
        self._said = ""
        self._resync_due = 0.0
        self._next_publish = 0.0
        self._next_look = 0.0
        self._lookout = Lookout()
        self._last_resync_ended = 0.0
        self._resync_cpu = 0.0
        self._boot_id = _boot_id(options.proc)

    def _proc_mapper(self) -> Mapper:
        options = self._options
        return open_mapper("proc", options.proc, self._tree, own_uid=options.pod_uid, stop=self._stop.is_set)

    def open(self) -> None:
        """Load and attach; a kernel that refuses makes the node Failed, and it still publishes.

        Attach first, then the baseline: no gap between.
        """
        try:
            self._tracer = open_tracer(btf_path=self._options.btf)
        except AttachFailed as error:
            self._health.fail(CollectionReason.ATTACH_FAILED, str(error))
        except RingBufferFailed as error:
            self._health.fail(CollectionReason.RING_BUFFER_FAILED, str(error))
        except PactoError as error:
            self._health.fail(CollectionReason.LOAD_FAILED, str(error))
        else:
            self._health.connections_since = time.time()
            self._tracer.start(poll_ms=int(self._tick() * 1000))
        if self._options.mapper != "proc":
            self._open_mapper()

    def _open_mapper(self) -> None:
        options = self._options
        try:
            self._mapper = open_mapper(
                options.mapper,
                options.proc,
                self._tree,
                own_uid=options.pod_uid,
                stop=self._stop.is_set,
                say=self._say_once,
            )
        except PactoError as error:
            self._health.fail(CollectionReason.LOAD_FAILED, f"--mapper iter: {error}")

    def _say_once(self, words: str) -> None:
        """What is no problem by itself; where the program did not load, that is the news."""
        if self._tracer is not None:
            print(f"pacto agent: {words}", file=sys.stderr, flush=True)

    def _tick(self) -> float:
        return min(TICK_SECONDS, self._options.publish_interval / 4)

    def run(self) -> None:
        """Work until stopped; raises BrokenPipeError once nobody reads the sink any more."""
        self._resync()
        self._adopt()
        while not self._stop.is_set():
            self._collect()
            now = time.monotonic()
            if now >= self._when_resync(now) or self._sees_new_pod(now):
                self._resync()
            if now >= self._next_publish and not self._stop.is_set():
                self._next_publish = now + self._options.publish_interval
                self._publish()
            self._stop.wait(self._tick())
        if self._publisher.has_published:
            self._publish_last()

    def _publish_last(self) -> None:
        """What was seen since the last publish, if that is a change; no heartbeat, for nobody watches on.

        By a thread, for a sink may hang; it ends with the process.
        """
        self._collect(drain=True)

        def publish() -> None:
            with suppress(BrokenPipeError):  # the reader may have ended before us
                self._publish(last=True)

        last = threading.Thread(target=publish, name="last publish", daemon=True)
        last.start()
        last.join(LAST_SECONDS)

    def _adopt(self) -> None:
        """Go on with the peers of the agent before this one, if this is still the same boot."""
        try:
            raw = self._sink.load()
            before = decode_node(raw) if raw else None
        except (SinkFailed, MalformedObject) as error:
            self._say(f"peers of an earlier agent are not taken over: {error}")
            return
        if (
            before is None
            or before.node.boot_id != self._boot_id
            or before.node_name != self._options.node_name
        ):
            return
        now = time.time()
        if before.last_published and now - before.last_published <= PEER_RETENTION_SECONDS:
            self._view.adopt(before.pods, now)

    def close(self) -> None:
        """Release the kernel's objects."""
        tracer, self._tracer = self._tracer, None
        self._mapper.close()
        if tracer is not None:
            tracer.close()

    def _when_resync(self, now: float) -> float:
        if not self._attribution.waiting:
            return self._resync_due
        early = max(now + EARLY_RESYNC_SECONDS, self._last_resync_ended + self._gap())
        self._resync_due = min(self._resync_due, early)
        return self._resync_due

    def _gap(self) -> float:
        """Seconds from one resync to the next, whatever asks for it: what is costly is done less often."""
        return max(GAP_SECONDS, REST * self._resync_cpu)

    def _sees_new_pod(self, now: float) -> bool:
        since = now - self._last_resync_ended
        if now < self._next_look or since < self._gap():
            return False
        self._next_look = now + LOOK_SECONDS
        return self._lookout.due(pod_uids(self._tree), self._view.pods, since_resync=since)

    def _collect(self, *, drain: bool = False) -> None:
        """Move what the reader gathered into the view."""
        tracer = self._tracer
        if tracer is None:
            return
        try:
            if drain:
                tracer.drain()
        except RingBufferFailed as error:
            self._health.fail(CollectionReason.RING_BUFFER_FAILED, str(error))
        if tracer.problem:
            self._health.fail(CollectionReason.RING_BUFFER_FAILED, tracer.problem)
        listens, slices, cuts = tracer.take()
        self._attribution.listens(listens)
        for sums in slices:
            self._attribution.connections(sums, time.time())
            time.sleep(0)
        self._attribution.cuts(cuts, time.time())
        self._count_losses(tracer)
        if self._view.rescans:
            self._rescan()

    def _count_losses(self, tracer: Tracer) -> None:
        lost = tracer.lost()
        listens, connections = (new - old for new, old in zip(lost, self._lost, strict=True))
        self._lost = lost
        if listens or connections:
            self._losses += 1
            self._health.lose(listens + connections, connections, time.time())
            self._view.note_loss()

    def _rescan(self) -> None:
        """Listeners whose port an event did not know, read again at once."""
        places = self._view.pods.places
        wanted = [places[uid] for uid in self._view.rescans if uid in places]
        self._view.rescans.clear()
        try:
            found = dict(self._mapper.baselines(wanted, self._view.known_sockets))
        except ResyncFailed:
            return  # the next resync reads them, and says what is wrong
        self._view.rescan({uid: sockets for uid, sockets in found.items() if sockets})

    def _resync(self) -> None:
        """Map and baseline, between two drains: what happens meanwhile is newer than what is read."""
        self._collect(drain=True)
        self._view.begin_resync()
        self._attribution.begin_map()
        losses, at, began = self._losses, time.time(), time.thread_time()
        try:
            self._find_myself()
            pods = self._mapper.pods(self._view.pods)
            self._view.set_map(pods)
            baselines = self._baselines(pods)
        except ResyncFailed as error:
            self._view.abandon_resync()
            self._health.resync_problem = str(error)
        else:
            self._collect(drain=True)
            if not self._stop.is_set():
                self._view.end_resync(baselines, at)
                self._health.resynced(at, dropped_meanwhile=self._losses != losses)
                self._attribution.retry(time.time())
        self._resync_cpu = time.thread_time() - began
        self._last_resync_ended = time.monotonic()
        self._resync_due = self._last_resync_ended + max(self._options.resync_interval, self._gap())

    def _find_myself(self) -> None:
        """Raise ResyncFailed where there are no cgroups, or those that are read do not show this agent's pod.

        They are then not the node's, or named in a way that no rule here knows: without them nothing
        tells a pod's socket from a node proxy's in its namespace.
        """
        uid, root = self._options.pod_uid, self._options.cgroup_root
        if not self._tree.found:
            raise ResyncFailed(problem=f"no cgroup hierarchy in {root}: mount the node's /sys/fs/cgroup")
        if uid and uid not in pod_uids(self._tree):
            problem = f"this agent's own pod {uid} is not among the cgroups in {root}"
            raise ResyncFailed(problem=f"{problem}: mount the node's /sys/fs/cgroup read-only there")

    def _baselines(self, pods: PodMap) -> dict[str, Sockets]:
        mapped = [place for place in pods.places.values() if place.mapped]
        spread = self._mapper.slow and len(mapped) > UNSPREAD_NAMESPACES
        baselines: dict[str, Sockets] = {}
        collected = began = time.monotonic()
        for uid, sockets in self._mapper.baselines(mapped, self._view.known_sockets):
            if sockets:
                baselines[uid] = sockets
            if spread:
                self._stop.wait(min(SPREAD_SECONDS, SPREAD * (time.monotonic() - began)))
            began = time.monotonic()
            if began - collected >= TICK_SECONDS:
                self._collect()
                collected = began
            if self._stop.is_set():
                break
        return baselines

    def _publish(self, *, last: bool = False) -> None:
        now = time.time()
        self._view.prune(now)
        health = self._health
        health.unattributed_events = self._attribution.unattributed
        health.foreign_events = self._view.foreign_events
        if (requests := self._sink.requests) is not None:
            health.api_requests_per_minute = self._requests.add(requests, time.monotonic())
        health.pods_found = len(self._view.pods.places)
        health.pod_limit_exceeded = self._view.pod_limit_exceeded
        observation = NodeRuntimeObservation(
            name=self._options.node_name,
            node_name=self._options.node_name,
            namespace=self._options.namespace,
            last_published=now,
            collection=health.collection(),
            node=self._node_info(),
        )
        tracer = self._tracer
        read = tracer is None or tracer.silent_seconds() < READER_SILENCE_SECONDS
        vouch = read and not last
        self._publisher.publish(observation, now, vouch=vouch, pods=self._view.snapshot(now))
        self._say(observation.collection.message or self._publisher.problem)

    def _say(self, problem: str) -> None:
        """One line on standard error when what is wrong changes, never one per event."""
        if problem != self._said:
            self._said = problem
            print(f"pacto agent: {problem or 'all is well again'}", file=sys.stderr, flush=True)

    def _node_info(self) -> NodeInfo:
        return NodeInfo(
            kernel_release=os.uname().release,
            cgroup_mode=self._tree.mode,
            boot_id=self._boot_id,
            agent_version=__version__,
            mapper=self._mapper.name,
        )


def _boot_id(proc: str) -> str:
    try:
        with open(os.path.join(proc, "sys/kernel/random/boot_id"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
