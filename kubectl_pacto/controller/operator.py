# SPDX-License-Identifier: MIT
"""The operator's threads: reflectors from the start, workers once it leads, all ended in reverse."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kubectl_pacto.collect.live import Live
from kubectl_pacto.collect.live_kinds import LIVE_KINDS, LiveKind
from kubectl_pacto.collect.live_nodes import NodeObjects
from kubectl_pacto.collect.probing import PortProber, Wanted
from kubectl_pacto.controller.connection import Connection
from kubectl_pacto.controller.heartbeats import Heartbeats
from kubectl_pacto.controller.loader import ContractLoader
from kubectl_pacto.controller.metrics import Metrics, Samples
from kubectl_pacto.controller.node_agent import NodeAgents
from kubectl_pacto.controller.options import Settings
from kubectl_pacto.controller.queue import Taken, WorkQueue
from kubectl_pacto.controller.reconcile import Parts, Reconciler
from kubectl_pacto.controller.registry_side import RegistrySide, Work
from kubectl_pacto.controller.triggers import Triggers
from kubectl_pacto.kube.errors import ApiConflict, ApiError
from kubectl_pacto.kube.paths import PACTO_API, leases, namespaced
from kubectl_pacto.kube.polled import PolledObject
from kubectl_pacto.kube.reflector import Key, Reflector
from kubectl_pacto.model.bounds import STALENESS_INTERVALS, WATCH_SILENCE_SECONDS
from kubectl_pacto.model.decode_net import decode_lease
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.kube import Lease
from kubectl_pacto.observe.resolve import directory

LOG: Final = logging.getLogger(__name__)
TAKE_SECONDS: Final = 1.0
STUCK_SECONDS: Final = 600.0
AGENTS_SECONDS: Final = 30.0
CONFLICT_PAUSE: Final = 0.2
CLOSE_SECONDS: Final = 10.0
HEARTBEATS: Final = "Lease"
LEADER: Final = "leader"
REVISIONS: Final = "pactorevisions"


class Operator:
    """One process of the operator; `close` may be called twice."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.queue: WorkQueue[Key] = WorkQueue()
        self._connection = connection
        self._stop = threading.Event()
        self._leads = threading.Event()
        self._begun = False
        self._threads: list[threading.Thread] = []
        # those that came to their end
        self._done: set[str] = set()
        self._triggers = Triggers(self.queue.add)
        self.heartbeats = Heartbeats()
        kernel = settings.checks.kernel
        age = settings.node_object_age
        if kernel.staleness is not None:
            age = min(age, kernel.staleness / STALENESS_INTERVALS)
        self.nodes = NodeObjects(kernel.namespace, self.heartbeats, max_age=age)
        self.live = Live(
            changed=self._changed,
            trouble=self._trouble,
            lease_of=self.heartbeats.lease,
            probing=settings.probing,
        )
        self.live.prepare = directory
        self._registries = RegistrySide(
            settings.insecure_registries,
            self.live.pactos,
            self.queue.add,
            leads=self._leads.is_set,
            mirror_seconds=settings.mirror_interval,
            look_seconds=settings.secret_interval,
        )
        self.reflectors = self._make_reflectors()
        self._reconciler = Reconciler(self._make_parts())
        self.metrics.live("pacto_queue_depth", lambda: [((), float(self.queue.depth()))])
        self.metrics.live("pacto_watch_age_seconds", self._ages)

    def _make_parts(self) -> Parts:
        told = self.settings
        wanted = Wanted(probing=told.probing, metrics=told.checks.observe_metrics)
        return Parts(
            live=self.live,
            nodes=self.nodes,
            loader=ContractLoader(self._registries.downloads),
            metrics=self.metrics,
            options=told.checks,
            watch_alive=self._watch_alive,
            prober=PortProber(wanted) if wanted.anything else None,
            revise=self._registries.revisions.ensure,
        )

    def _make_reflectors(self) -> dict[str, Reflector[Any]]:
        found: dict[str, Reflector[Any]] = {}
        watched = self.settings.watch_namespace
        for kind in LIVE_KINDS:
            if kind.when == "metrics" and not self.settings.checks.observe_metrics:
                continue
            path, table = kind.path(watched), self.live.tables[kind.kind]
            if kind.cluster_wide and watched:
                # with rights in one namespace alone, what is outside of all can only be asked for by name
                found[kind.kind] = PolledObject(f"{path}/{watched}", kind.decode, table)
            else:
                found[kind.kind] = Reflector(path, kind.decode, table, optional=kind.optional)
        path = namespaced(PACTO_API, watched, REVISIONS) if watched else f"{PACTO_API}/{REVISIONS}"
        revisions = self._registries.revisions.table
        found["PactoRevision"] = Reflector(path, revisions.decode, revisions)
        kernel = self.settings.checks.kernel
        if kernel.enabled:
            found[HEARTBEATS] = Reflector(leases(kernel.namespace), _lease, self.heartbeats)
        return found

    def _changed(self, kind: LiveKind, key: Key, before: Any, after: Any) -> None:
        if kind.kind == "Pacto":
            old, new = (None if one is None else one.pacto for one in (before, after))
            self._triggers.pacto_changed(key, old, new)
        else:
            self._triggers.object_changed(kind.kind, key)

    def _trouble(self, kind: LiveKind) -> str:
        reflector = self.reflectors.get(kind.kind)
        return "" if reflector is None else reflector.trouble

    def _watch_alive(self) -> bool:
        reflector = self.reflectors.get(HEARTBEATS)
        silence = None if reflector is None else reflector.silence
        return silence is not None and silence <= WATCH_SILENCE_SECONDS

    def _ages(self) -> Samples:
        return [
            ((("kind", name),), reflector.silence)
            for name, reflector in sorted(self.reflectors.items())
            if reflector.silence is not None
        ]

    def _start(self, name: str, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        # only now: one that has not begun is not alive either, and a probe may look at any moment
        self._threads.append(thread)

    def watch(self) -> None:
        """Start the reflectors; a candidate that does not lead keeps its copy warm, too."""
        for name, reflector in self.reflectors.items():
            self._start(f"reflector {name}", partial(self._reflect, reflector))

    def _reflect(self, reflector: Reflector[Any]) -> None:
        client = self._connection.client(self._stop.wait)
        try:
            reflector.run(client, self._connection.watch())
        finally:
            client.close()

    def lead(self) -> None:
        """Start to check, once every copy is complete and heartbeats had the time to move; or go on."""
        self._leads.set()
        if not self._begun:
            self._begun = True
            self._start(LEADER, self._lead)

    def rest(self) -> None:
        """Begin nothing more that writes, until told to lead again."""
        self._leads.clear()

    def _lead(self) -> None:
        for reflector in self.reflectors.values():
            while not reflector.wait_listed(0.2):
                if self._stop.is_set():
                    return
        self._await_heartbeats()
        self._start("node agents", self._care_for_agents)
        for number in range(self.settings.workers):
            self._start(f"worker {number}", self._work)
        for name, work in self._registries.work().items():
            self._start(name, partial(self._with_client, work))
        self._done.add(LEADER)

    def _with_client(self, work: Work) -> None:
        client = self._connection.client(self._stop.wait)
        try:
            work(client, self._stop)
        finally:
            client.close()

    def _await_heartbeats(self) -> None:
        # without this a restart would read as Stale until the next interval of each Pacto
        waited, limit = 0.0, self.heartbeats.longest_interval()
        while self.heartbeats.unproven() and waited < limit and not self._stop.wait(0.2):
            waited += 0.2

    def _care_for_agents(self) -> None:
        agents = NodeAgents(self.settings.agent, self.settings.agent_namespace)
        client = self._connection.client(self._stop.wait)
        try:
            while not self._stop.is_set():
                try:
                    if self._leads.is_set():
                        agents.ensure(client)
                        agents.clean(client)
                except ApiError as error:
                    LOG.warning("node agents: %s", error)
                self._stop.wait(AGENTS_SECONDS)
        finally:
            client.close()

    def _work(self) -> None:
        client = self._connection.client(self._stop.wait)
        try:
            while not self._stop.is_set():
                taken = self.queue.take(TAKE_SECONDS) if self._leads.wait(TAKE_SECONDS) else None
                if taken is None:
                    continue
                if self._leads.is_set():
                    self._reconcile(client, taken)
                else:  # no more, since it began to wait for a key
                    self.queue.add(taken.key)
                    self.queue.done(taken.key)
        finally:
            client.close()

    def _reconcile(self, client: Any, taken: Taken[Key]) -> None:
        key = taken.key
        try:
            again = self._reconciler.reconcile(client, key, taken.due, taken.asked)
        except ApiConflict as error:
            # the watch brings the newer version; the pass is repeated on it
            LOG.info("%s/%s: %s", *key, error)
            self.metrics.checked(0.0, "conflict")
            self.queue.done(key, again=CONFLICT_PAUSE)
        except ApiError as error:
            self.metrics.checked(0.0, "error")
            LOG.warning("%s/%s: %s; again in %.1f s", *key, error, self.queue.failed(key))
        except Exception:
            # one Pacto that no check can handle must not end the checks of all others
            self.metrics.checked(0.0, "error")
            pause = self.queue.failed(key)
            LOG.exception("%s/%s: the check failed; again in %.1f s", *key, pause)
        else:
            if again is None:
                self.queue.forget(key)
            else:
                self.queue.done(key, again=again)

    def is_ready(self) -> str:
        """Why not ready: kinds that have not been listed; empty if ready."""
        waiting = [name for name, one in self.reflectors.items() if not one.is_listed]
        return f"not listed yet: {', '.join(waiting)}" if waiting else ""

    def is_ill(self) -> str:
        """Why this process should be started anew; empty if it should not."""
        if not self._stop.is_set():
            ended = [thread.name for thread in self._threads if not thread.is_alive()]
            dead = [name for name in ended if name not in self._done]
            if dead:
                return f"ended: {', '.join(dead)}"
        running = self.queue.longest_running()
        return f"a check has been running for {running:.0f} s" if running > STUCK_SECONDS else ""

    def close(self) -> None:
        """End all threads, and wait for those that write statuses."""
        self._stop.set()
        for reflector in self.reflectors.values():
            reflector.stop()
        self.queue.close()
        self._registries.close()
        asking = self._registries.work().keys()
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in list(self._threads):
            # a registry may take its time; nothing that is asked of one matters any more
            if thread.name not in asking:
                thread.join(max(0.0, deadline - time.monotonic()))


def _lease(raw: dict[str, Any]) -> Lease:
    return decode_lease(Fields(raw))
