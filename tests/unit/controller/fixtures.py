# SPDX-License-Identifier: MIT
"""A reconciler over tables filled from rows, and an API in memory that it writes to."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kubectl_pacto.collect.live import Live
from kubectl_pacto.collect.live_kinds import LIVE_KINDS
from kubectl_pacto.collect.live_nodes import NodeObjects
from kubectl_pacto.conformance.source import Loaded, load_offline
from kubectl_pacto.controller.heartbeats import Heartbeats
from kubectl_pacto.controller.metrics import Metrics
from kubectl_pacto.controller.reconcile import Parts, Reconciler
from kubectl_pacto.kube.errors import ApiConflict, ApiNotFound
from kubectl_pacto.kube.paths import node_observations
from kubectl_pacto.model.decode_net import decode_lease
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.node import AGENT_NAMESPACE
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.snapshot import KernelOptions, Options
from tests.support import builders
from tests.support.merge_patch import merged

KEY = (builders.NAMESPACE, "shop")
KINDS = {kind.kind: kind for kind in LIVE_KINDS}
Raw = dict[str, Any]


class Loader:
    """Inline contracts alone; while a test says so, the registry of all of them says nothing."""

    def __init__(self) -> None:
        self.hangs = False
        self.found: Loaded | None = None

    def load(self, pacto: Pacto) -> Loaded | None:
        return None if self.hangs else self.found or load_offline(pacto)

    def forget(self, key: tuple[str, str]) -> None:
        """Nothing is kept."""


class World:
    """One Pacto with its cluster; the client that the reconciler gets is the world itself."""

    def __init__(self, row: Raw, *, kernel: bool = True) -> None:
        self.now = builders.AT
        self.mono = 1000.0
        self.nodes: dict[str, Raw] = {}
        self.patches: list[Raw] = []
        self.events: list[Raw] = []
        self.conflicts = 0
        self.on_get: Callable[[], None] = lambda: None
        self.version = 1
        self.beats = Heartbeats(lambda: self.now)
        self.objects = NodeObjects(AGENT_NAMESPACE, self.beats, max_age=5, clock=lambda: self.mono)
        self.live = Live(
            changed=lambda *_: None,
            trouble=lambda _: "",
            lease_of=self.beats.lease,
            clock=lambda: self.mono,
        )
        self.metrics = Metrics()
        self.alive = True
        self.loader = Loader()
        options = Options(kernel=KernelOptions(enabled=kernel))
        parts = Parts(
            self.live,
            self.objects,
            self.loader,
            self.metrics,
            options,
            watch_alive=lambda: self.alive,
            clock=lambda: self.now,
        )
        self.reconciler = Reconciler(parts)
        self.pacto: Raw = {}
        self.apply(row)

    def apply(self, row: Raw) -> None:
        """Everything a row describes, as the reflectors would bring it."""
        for raw in builders.objects(row):
            kind, name = raw["kind"], raw["metadata"]["name"]
            if kind == "NodeRuntimeObservation":
                self.nodes[name] = raw
            elif kind == "Lease":
                self.beats.put((AGENT_NAMESPACE, name), decode_lease(Fields(raw)))
            elif kind == "Pacto" and name == "shop":
                status = self.pacto.get("status", {})
                self.pacto = {**raw, "status": status}
                self._store()
            else:
                self._put(kind, raw)

    def _put(self, kind: str, raw: Raw) -> None:
        key = raw["metadata"].get("namespace", ""), raw["metadata"]["name"]
        self.live.tables[kind].put(key, KINDS[kind].decode(raw))

    def _store(self) -> None:
        self.version += 1
        self.pacto["metadata"].update(resourceVersion=str(self.version), uid="u1", generation=1)
        self._put("Pacto", copy.deepcopy(self.pacto))

    def renew(self) -> None:
        """Each node renews its heartbeat now."""
        from kubectl_pacto.model.instant import format_instant

        for name in self.nodes:
            spec = {"renewTime": format_instant(self.now, digits=6), "leaseDurationSeconds": 90}
            lease = {"metadata": {"name": name, "namespace": AGENT_NAMESPACE}, "spec": spec}
            self.beats.put((AGENT_NAMESPACE, name), decode_lease(Fields(lease)))

    def later(self, seconds: float) -> None:
        """Time passes; nodes renew meanwhile."""
        self.now += seconds
        self.mono += seconds

    def run(self) -> float | None:
        """One pass."""
        return self.reconciler.reconcile(self, KEY, self.mono)  # type: ignore[arg-type]

    @property
    def status(self) -> Raw:
        """The status that the API has."""
        found: Raw = self.pacto["status"]
        return found

    @property
    def codes(self) -> list[str]:
        """The codes of the findings."""
        return [item["code"] for item in self.status.get("findings", ())]

    def get(self, path: str, *, accept: str = "") -> Raw:  # noqa: ARG002 - a client's shape
        self.on_get()
        for name, raw in self.nodes.items():
            if path == node_observations(AGENT_NAMESPACE, name):
                return raw
        raise ApiNotFound(method="GET", path=path, problem="not there")

    def post(self, path: str, body: Raw) -> Raw:  # noqa: ARG002 - a client's shape
        self.events.append(body)
        return body

    def patch(self, path: str, body: Raw) -> Raw:
        assert path.endswith("/pactos/shop/status")
        if self.conflicts or body["metadata"]["resourceVersion"] != str(self.version):
            self.conflicts = max(0, self.conflicts - 1)
            raise ApiConflict(method="PATCH", path=path, problem="modified")
        if not self.pacto:
            raise ApiNotFound(method="PATCH", path=path, problem="gone")
        self.patches.append(body)
        self.pacto["status"] = merged(self.pacto["status"], body["status"])
        self._store()
        return self.pacto
