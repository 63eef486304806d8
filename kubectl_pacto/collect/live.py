# SPDX-License-Identifier: MIT
"""The cluster as reflectors keep it, frozen into one Cluster that many checks share.

A generation is built when something changed, and the less often the more it costs: checks of ten
thousand Pactos share few. What is read for one check alone (node objects, bound ConfigMaps and
Secrets, probes) is added to a generation late, and never changed by anybody else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from kubectl_pacto.collect.compact import unpacked
from kubectl_pacto.collect.live_kinds import LIVE_KINDS, Known, LiveKind
from kubectl_pacto.collect.live_nodes import NodeRecord
from kubectl_pacto.collect.node_index import unpack
from kubectl_pacto.kube.reflector import Broken, Key
from kubectl_pacto.model.cluster import Cluster
from kubectl_pacto.model.kube import ConfigMap, Lease, Secret
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from kubectl_pacto.model.pacto import Pacto
from kubectl_pacto.model.probe import Probes

T = TypeVar("T")
LONGEST_AGE: Final = 10.0
FIELDS: Final = {
    name: [kind for kind in LIVE_KINDS if kind.field == name]
    for name in dict.fromkeys(kind.field for kind in LIVE_KINDS)
}
COST_SHARE: Final = 10.0
# what costs less is made anew for each check that needs it
DEAR: Final = 0.05
# the objects of a field of Cluster, and why others are broken by kind, namespace and name
_Field = tuple[tuple[Any, ...], dict[tuple[str, str, str], str]]


class Table(Generic[T]):
    """The objects of one kind; `changed` hears of each with what was before."""

    def __init__(self, changed: Callable[[Key, T | None, T | None], None] | None = None) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._items: dict[Key, T] = {}
        self._broken: dict[Key, str] = {}
        self.changes = 0

    def replace(self, items: Mapping[Key, T | Broken]) -> None:
        """After a list."""
        good = {key: item for key, item in items.items() if not isinstance(item, Broken)}
        with self._lock:
            before, self._items = self._items, good
            self._broken = {key: item.why for key, item in items.items() if isinstance(item, Broken)}
            self.changes += 1
        for key in before.keys() - good.keys():
            self._tell(key, before[key], None)
        for key, item in good.items():
            if before.get(key) != item:
                self._tell(key, before.get(key), item)

    def put(self, key: Key, item: T | Broken) -> None:
        """An object that is new or has changed."""
        with self._lock:
            before = self._items.get(key)
            if isinstance(item, Broken):
                self._items.pop(key, None)
                self._broken[key] = item.why
                self.changes += 1
            else:
                self._items[key] = item
                was_broken = self._broken.pop(key, None) is not None
                self.changes += was_broken or self._counts(before, item)
        self._tell(key, before, None if isinstance(item, Broken) else item)

    def drop(self, key: Key) -> None:
        """An object that is gone."""
        with self._lock:
            before = self._items.pop(key, None)
            self._broken.pop(key, None)
            self.changes += 1
        self._tell(key, before, None)

    def _tell(self, key: Key, before: T | None, after: T | None) -> None:
        if self._changed is not None and before != after:
            self._changed(key, before, after)

    def get(self, key: Key) -> T | None:
        """One object."""
        return self._items.get(key)

    def contents(self) -> tuple[tuple[T, ...], dict[Key, str]]:
        """All objects, and why others are broken: of one moment, for who is in neither is not there."""
        with self._lock:
            return tuple(self._items.values()), dict(self._broken)

    def members(self) -> tuple[tuple[Any, ...], dict[Key, str]]:
        """The same, as a Cluster holds them."""
        return self.contents()

    def _counts(self, before: T | None, after: T) -> bool:  # noqa: ARG002 - for tables that are choosy
        """Whether a change of one object is one for a generation."""
        return True

    def __len__(self) -> int:
        return len(self._items)


class Pactos(Table[Known]):
    """The Pactos, whose statuses are packed until a check asks for one."""

    def get(self, key: Key) -> Known | None:
        """One Pacto, as its check reads it."""
        found = super().get(key)
        return None if found is None else replace(found, pacto=unpacked(found.pacto))

    def members(self) -> tuple[tuple[Pacto, ...], dict[Key, str]]:
        """All Pactos, for others to resolve their dependencies by: without their statuses."""
        items, broken = self.contents()
        return tuple(item.public or item.pacto for item in items), broken

    def _counts(self, before: Known | None, after: Known) -> bool:
        # each check writes a status: a generation for each would be one for each check
        return before is None or before.public != after.public


@dataclass(frozen=True, eq=False)
class LiveCluster(Cluster):
    """One generation, or one check's copy of it. `built_at` by the monotonic clock; `late_...` and the
    probes are what a check adds to its copy."""

    built_at: float = 0.0
    lease_of: Callable[[str], Lease | None] = lambda _: None
    generation: LiveCluster | None = None
    late_nodes: dict[str, NodeRecord] = field(default_factory=dict)
    late_config_maps: dict[Key, ConfigMap] = field(default_factory=dict)
    late_secrets: dict[Key, Secret] = field(default_factory=dict)
    late_failures: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def whole(self) -> LiveCluster:
        """The generation."""
        return self.generation or self

    def for_one_check(self) -> LiveCluster:
        """A copy of a generation that shares its indexes."""
        failures = dict(self.failures)
        copied = LiveCluster(
            **{name: getattr(self, name) for name in FIELDS},
            probes=Probes(self.probes.enabled, {}, {}),
            failures=failures,
            built_at=self.built_at,
            lease_of=self.lease_of,
            generation=self,
            late_failures=failures,
        )
        copied.index(self)
        return copied

    def node(self, agent_namespace: str, name: str) -> NodeRuntimeObservation | None:
        """The node object of this name, as it was read for this check."""
        record = self.late_nodes.get(name)
        found = record.node if record is not None else None
        return found if found is not None and found.namespace == agent_namespace else None

    def view(self, agent_namespace: str, node: str, uid: str) -> PodView | None:
        """What a node's object says of one pod."""
        record = self.late_nodes.get(node)
        if not uid or record is None or self.node(agent_namespace, node) is None:
            return None
        packed = record.views.get(uid)
        return None if packed is None else unpack(uid, packed)

    def lease(self, namespace: str, name: str) -> Lease | None:
        """A node's Lease."""
        found = self.lease_of(name)
        return found if found is not None and found.namespace == namespace else None

    def config_map(self, namespace: str, name: str) -> Any:
        """A bound ConfigMap."""
        return self.failure("ConfigMap", namespace, name) or self.late_config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str) -> Any:
        """Whether a bound Secret exists."""
        return self.failure("Secret", namespace, name) or self.late_secrets.get((namespace, name))


class Live:
    """The tables of all kinds, and the newest generation of them."""

    def __init__(
        self,
        *,
        changed: Callable[[LiveKind, Key, Any, Any], None],
        trouble: Callable[[LiveKind], str],
        lease_of: Callable[[str], Lease | None],
        probing: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tables: dict[str, Table[Any]] = {
            kind.kind: (Pactos if kind.kind == "Pacto" else Table)(
                lambda key, before, after, kind=kind: changed(kind, key, before, after)  # type: ignore[misc]
            )
            for kind in LIVE_KINDS
        }
        self._trouble = trouble
        self._lease_of = lease_of
        self._probing = probing
        # makes what else all checks of a generation share
        self.prepare: Callable[[Cluster], object] = lambda _: None
        self._clock = clock
        self._lock = threading.Lock()
        self._fields: dict[str, tuple[tuple[int, ...], _Field]] = {}
        self._newest: LiveCluster | None = None
        self._state: tuple[Any, ...] = ()
        self.cost = 0.0

    @property
    def pactos(self) -> Table[Known]:
        """The Pactos, each with its identity."""
        return self.tables["Pacto"]

    def generation(self, due: float = 0.0) -> LiveCluster:
        """A Cluster that holds what had arrived by `due`, as far as building them is affordable."""
        with self._lock:
            now, newest = self._clock(), self._newest
            if newest is not None:
                age = now - newest.built_at
                if age < self._kept and (newest.built_at >= due or self.cost > DEAR):
                    return newest
                if self._version() == self._state:
                    return newest
            state = self._version()
            built = self._build(now)
            # what the first check would make of it costs most, so it is made here and counted
            built.index(newest)
            self.prepare(built)
            self._newest, self._state, self.cost = built, state, self._clock() - now
            return built

    def rest(self, asked: float) -> float:
        """Seconds until there may be a generation that holds what had arrived by `asked`."""
        with self._lock:
            newest = self._newest
            if newest is None or newest.built_at >= asked or self.cost <= DEAR:
                return 0.0
            left = newest.built_at + self._kept - self._clock()
            return left if left > 0 and self._version() != self._state else 0.0

    @property
    def _kept(self) -> float:
        """How long a generation is kept whatever changes."""
        return min(COST_SHARE * self.cost, LONGEST_AGE)

    def _version(self) -> tuple[Any, ...]:
        counts = tuple(table.changes for table in self.tables.values())
        return counts, tuple(self._trouble(kind)[:20] for kind in LIVE_KINDS)

    def _build(self, now: float) -> LiveCluster:
        # before the objects: a list that comes meanwhile must not vouch for what was there before it
        troubles = {(kind.kind, "", ""): self._trouble(kind) for kind in LIVE_KINDS}
        failures = {key: why for key, why in troubles.items() if why}
        fields: dict[str, Any] = {}
        for name in FIELDS:
            fields[name], broken = self._field(name)
            failures |= broken
        return LiveCluster(
            **fields,
            probes=Probes(self._probing, {}, {}),
            failures=failures,
            built_at=now,
            lease_of=self._lease_of,
        )

    def _field(self, name: str) -> _Field:
        """A field of Cluster; the same tuple as long as none of its objects has changed."""
        kinds = FIELDS[name]
        # counted first: what comes meanwhile is in the objects, and counts for the next generation
        changes = tuple(self.tables[kind.kind].changes for kind in kinds)
        known = self._fields.get(name)
        if known is not None and known[0] == changes:
            return known[1]
        items: list[Any] = []
        broken: dict[tuple[str, str, str], str] = {}
        for kind in kinds:
            members, why = self.tables[kind.kind].members()
            items += members
            broken |= {(kind.kind, *key): text for key, text in why.items()}
        found = tuple(items), broken
        self._fields[name] = changes, found
        return found
