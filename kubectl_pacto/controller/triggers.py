# SPDX-License-Identifier: MIT
"""Which Pactos a changed object is about. Node objects, Leases, pods and slices trigger nothing.

Services and workloads are mapped by name alone, as targets name them; a Pacto triggers itself when
its own generation changed, and its dependents when what it publishes did.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeVar

from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.model.pacto import WORKLOAD_KINDS, Pacto
from kubectl_pacto.observe.resolve import base_ref

N = TypeVar("N", str, Key)
TARGETS: Final = frozenset({"Service", *WORKLOAD_KINDS})


class Triggers:
    """An index of the Pactos; called by the reflectors' threads."""

    def __init__(self, enqueue: Callable[[Key], None]) -> None:
        self._enqueue = enqueue
        self._lock = threading.Lock()
        self._by_target: defaultdict[Key, set[Key]] = defaultdict(set)
        self._by_provider: defaultdict[str, set[Key]] = defaultdict(set)

    def object_changed(self, kind: str, key: Key) -> None:
        """A Service or workload came, changed or went."""
        if kind not in TARGETS:
            return
        with self._lock:
            about = sorted(self._by_target.get(key, ()))
        for pacto in about:
            self._enqueue(pacto)

    def pacto_changed(self, key: Key, before: Pacto | None, after: Pacto | None) -> None:
        """A Pacto came, changed or went."""
        with self._lock:
            _move(self._by_target, key, _targets(before), _targets(after))
            _move(self._by_provider, key, _providers(before), _providers(after))
            dependents = self._dependents(before, after) - {key}
        if before is None or after is None or before.generation != after.generation:
            self._enqueue(key)
        for other in sorted(dependents):
            self._enqueue(other)

    def _dependents(self, before: Pacto | None, after: Pacto | None) -> set[Key]:
        published = [None if pacto is None else pacto.published for pacto in (before, after)]
        if published[0] == published[1]:
            return set()
        return {
            key
            for one in published
            if one is not None
            for name in (one.service, base_ref(one.resolved_ref))
            if name
            for key in self._by_provider.get(name, ())
        }


def _move(index: defaultdict[N, set[Key]], key: Key, before: set[N], after: set[N]) -> None:
    for name in before - after:
        index[name].discard(key)
        if not index[name]:
            del index[name]
    for name in after - before:
        index[name].add(key)


def _targets(pacto: Pacto | None) -> set[Key]:
    names = () if pacto is None else (pacto.service, pacto.workload_name)
    return {(pacto.namespace, name) for name in names if name and pacto is not None}


def _providers(pacto: Pacto | None) -> set[str]:
    """The refs and names of the dependencies that the last check saw declared."""
    declared = None if pacto is None else pacto.status.get("dependencies")
    found: set[str] = set()
    for item in declared if isinstance(declared, list) else ():
        if isinstance(item, dict):
            found |= {base_ref(str(item.get("ref") or "")), str(item.get("name") or "")}
    return found - {""}
