# SPDX-License-Identifier: MIT
"""One pass over one Pacto: read what only it needs, check, write its status if that is news.

The verdict is `conformance.check`'s, the very code of `kubectl pacto evaluate`. At most one patch per
pass; it names the version it was made from, so that two writers cannot mix their windows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from kubectl_pacto.collect.live import Live, LiveCluster
from kubectl_pacto.collect.live_bound import read_bound
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.collect.live_nodes import NodeObjects, nodes_of
from kubectl_pacto.conformance.check import Checked, check
from kubectl_pacto.conformance.compare import differs_beyond_times
from kubectl_pacto.conformance.source import Loaded, load_awaited
from kubectl_pacto.controller import events
from kubectl_pacto.controller.metrics import Metrics
from kubectl_pacto.controller.status_patch import merge_patch
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound
from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.model.bounds import PUBLISH_INTERVAL_SECONDS
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.instant import parse_instant
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import Options

SHORTEST_REQUEUE: Final = 1.0
# times are written in whole seconds, so an interval may seem that much shorter
SLACK: Final = 1.0
SETTLING_SECONDS: Final = 300.0
# a registry that does well has answered by then
PATIENCE_SECONDS: Final = 3.0


class Loader(Protocol):
    """Where contracts come from."""

    def load(self, pacto: Pacto) -> Loaded | None:
        """The contract of a Pacto, or why it cannot be had; None while it is fetched for the first time."""

    def forget(self, key: Key) -> None:
        """A Pacto that is gone."""


class Prober(Protocol):
    """Who asks Service ports what they speak."""

    def probe(self, cluster: LiveCluster, pacto: Pacto, contract: Contract) -> None:
        """Add the answers of the target's bound ports to the cluster."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a reconciler works with."""

    live: Live
    nodes: NodeObjects
    loader: Loader
    metrics: Metrics
    options: Options
    watch_alive: Callable[[], bool]
    prober: Prober | None = None
    revise: Callable[[Client, Known, Loaded], str] | None = None
    clock: Callable[[], float] = time.time


class Reconciler:
    """Checks Pactos by key; used by all workers, each with its own client."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._since = parts.clock()
        self._put_off: set[Key] = set()
        # since when a contract has been waited for, by the wall clock
        self._awaited: dict[Key, float] = {}

    def reconcile(self, client: Client, key: Key, due: float, asked: float = -math.inf) -> float | None:
        """Check one Pacto; seconds until its next check, None when it is gone. Raises ApiError.

        `asked` is when something changed that it is about: a cluster from before that would be a verdict
        of the past, which nothing would put right for an interval. It is waited for, once.
        """
        known = self._parts.live.pactos.get(key)
        if known is None:
            self._forget(key)
            return None
        rest = self._parts.live.rest(asked)
        if rest and key not in self._put_off:
            self._put_off.add(key)
            return rest
        self._put_off.discard(key)
        loaded = self._parts.loader.load(known.pacto)
        if loaded is None:
            # what is on its way comes with a check of its own
            if left := self._patience(key, known):
                return left
            loaded = load_awaited(known.pacto)
        else:
            self._awaited.pop(key, None)
        revision = self._parts.revise(client, known, loaded) if self._parts.revise else known.revision
        checked, at, unproven = self._check(client, known.pacto, loaded, max(due, asked))
        status = dict(checked.status)
        if revision:
            status["currentRevision"] = revision
        # the Pacto may have changed while it was looked at: then this pass says nothing
        newest = self._parts.live.pactos.get(key)
        if newest is None or newest.pacto.generation != known.pacto.generation:
            return 0.0 if newest is not None else None
        if not self._write(client, known, status, at):
            self._forget(key)
            return None
        self._parts.metrics.pacto(key, status)
        # just started: a heartbeat that is about to be seen to move makes the next pass another one
        hurry = unproven and at - self._since < SETTLING_SECONDS
        soon = min(PUBLISH_INTERVAL_SECONDS if hurry else math.inf, rest or math.inf)
        return min(_next(known.pacto, checked, at), soon)

    def _patience(self, key: Key, known: Known) -> float:
        """For how long nothing is said of a contract that does not come: seconds.

        A verdict about this very contract, of before a restart, stands for an interval.
        """
        status, now = known.pacto.status, self._parts.clock()
        stands = status.get("contractStatus") and status.get("observedGeneration") == known.pacto.generation
        patience = float(known.pacto.check_interval) if stands else PATIENCE_SECONDS
        return max(0.0, self._awaited.setdefault(key, now) + patience - now)

    def _forget(self, key: Key) -> None:
        self._put_off.discard(key)
        self._awaited.pop(key, None)
        self._parts.metrics.forget(key)
        self._parts.loader.forget(key)

    def _check(self, client: Client, pacto: Pacto, loaded: Loaded, due: float) -> tuple[Checked, float, bool]:
        """The outcome, its clock, and whether a heartbeat it rests on was not seen to move yet."""
        parts, unproven = self._parts, False
        cluster = parts.live.generation(due).for_one_check()
        options = parts.options
        contract = None if loaded.validated.errors or pacto.is_reference else loaded.validated.contract
        if contract is not None:
            read_bound(client, cluster, pacto)
            if parts.prober is not None:
                parts.prober.probe(cluster, pacto, contract)
        kernel = options.kernel
        if kernel.enabled and contract is not None:
            names = nodes_of(cluster, pacto)
            parts.nodes.refresh(client, names)
            cluster.late_nodes.update(parts.nodes.of(names))
            beats = {name: one.heartbeat for name, one in cluster.late_nodes.items() if one.heartbeat}
            unproven = not all(beat.renewed for beat in beats.values())
            kernel = replace(kernel, heartbeats=beats, watch_alive=parts.watch_alive())
            options = replace(options, kernel=kernel)
        at = parts.clock()
        began = time.perf_counter()
        checked = check(pacto, cluster, loaded, at=at, options=options)
        parts.metrics.checked(time.perf_counter() - began, "ok")
        return checked, at, unproven

    def _write(self, client: Client, known: Known, status: dict[str, Any], at: float) -> bool:
        """Write the status if it is news or the last is an interval old; False: the Pacto is gone."""
        before = known.pacto.status
        news = differs_beyond_times(before, status)
        if not news and at - _last(before) < known.pacto.check_interval - SLACK:
            return True
        patch = {
            "metadata": {"resourceVersion": known.version, "uid": known.uid},
            "status": merge_patch(before, status),
        }
        path = events.pacto_path(known.pacto.namespace, known.pacto.name)
        try:
            client.patch(f"{path}/status", patch)
        except ApiNotFound:
            return False
        if news:
            for one in events.news_of(before, status):
                events.post(client, known, one, at)
        return True


def _last(status: Any) -> float:
    try:
        return parse_instant(str(status.get("lastReconciledAt") or ""))
    except ValueError:
        return float("-inf")


def _next(pacto: Pacto, checked: Checked, at: float) -> float:
    """The interval, or sooner: the end of an open window, or a look at a pod that was too young."""
    sooner = pacto.check_interval if checked.next_check is None else checked.next_check - at
    return max(SHORTEST_REQUEUE, min(float(pacto.check_interval), sooner))
