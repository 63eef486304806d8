# SPDX-License-Identifier: MIT
"""The two ways to learn which pods are where and what they listen on: /proc, or the kernel's iterators.

Both answer the same questions; a kernel test holds them to the same answers where both can see.
Called by the agent's resync.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from kubectl_pacto.errors import PactoError, ResyncFailed
from pacto_agent.baseline import read_sockets
from pacto_agent.flows import Sockets, Sorting
from pacto_agent.iterators import Iterators, open_iterators
from pacto_agent.podmap import Place, PodMap, PodMapBuilder
from pacto_agent.podscan import CgroupTree, add_cgroups, boot_time, pids_of_pods, read_pods

NAMES: Final = ("auto", "proc", "iter")


class Mapper(Protocol):
    """Reads maps and baselines. `slow`: a namespace costs milliseconds, so they are spread over time."""

    name: str
    slow: bool

    def pods(self, previous: PodMap) -> PodMap:
        """The map as it is now; raises ResyncFailed."""

    def baselines(
        self, places: Iterable[Place], known: Callable[[str], frozenset[int]]
    ) -> Iterator[tuple[str, Sockets | None]]:
        """The sockets of each place by UID, None where they could not be read; raises ResyncFailed.

        `known`: the listeners' inodes that the view has of a pod.
        """

    def close(self) -> None:
        """Release what is held."""


class ProcMapper:
    """Through /proc: needs SYS_PTRACE, and milliseconds for each namespace."""

    name = "proc"
    slow = True

    def __init__(
        self, proc: str, tree: CgroupTree, *, own_uid: str = "", stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._proc = proc
        self._tree = tree
        self._own_uid = own_uid
        self._stop = stop

    def pods(self, previous: PodMap) -> PodMap:
        """The map as /proc shows it."""
        try:
            pods = read_pods(self._proc, self._tree, previous=previous, own_uid=self._own_uid)
        except OSError as error:
            raise ResyncFailed(problem=f"{error.filename or self._proc}: {error.strerror}") from error
        if pods.denied > pods.processes:
            # a few processes may hide on any host; when most do, nothing can be mapped
            words = f"ns/net of {pods.denied} processes may not be read"
            raise ResyncFailed(problem=f"{words}: add SYS_PTRACE, and AppArmor unconfined where it is on")
        unmapped = {uid for uid, place in pods.places.items() if not place.pids}
        hidden = self._hidden(unmapped) if unmapped else 0
        if hidden > len(pods.places) - len(unmapped):
            words = f"{self._proc} shows no process of {hidden} pods that have some"
            raise ResyncFailed(problem=f"{words}: mount it without hidepid, or add SYS_PTRACE")
        return pods

    def _hidden(self, uids: set[str]) -> int:
        """How many of these pods have processes in their cgroups, none of which /proc shows."""
        found = pids_of_pods(self._tree, uids).values()
        shown = (
            any(os.path.exists(os.path.join(self._proc, str(pid))) for pid in pids) for pids in found if pids
        )
        return sum(not one for one in shown)

    def baselines(
        self, places: Iterable[Place], known: Callable[[str], frozenset[int]]
    ) -> Iterator[tuple[str, Sockets | None]]:
        """Each namespace through a process of it; its own list has every listener, `known` or not."""
        del known
        for place in places:
            yield place.uid, read_sockets(self._proc, place.pids, self._stop)

    def close(self) -> None:
        """Nothing is held."""


class IterMapper:
    """Through the kernel's iterators: needs BPF and PERFMON, and the host's pid namespace."""

    name = "iter"
    slow = False

    def __init__(self, iterators: Iterators, proc: str, tree: CgroupTree) -> None:
        self._iterators = iterators
        self._proc = proc
        self._tree = tree

    def pods(self, previous: PodMap) -> PodMap:
        """The map as the kernel lists it."""
        builder = PodMapBuilder(boot_at=boot_time(), per_second=1_000_000_000)
        # processes first: what is read later can only name more cgroups than they are in
        processes = list(self._iterators.processes())
        add_cgroups(builder, self._tree)
        for process in processes:
            builder.add_identified(process)
        return builder.finish(previous)

    def baselines(
        self, places: Iterable[Place], known: Callable[[str], frozenset[int]]
    ) -> Iterator[tuple[str, Sockets | None]]:
        """All namespaces in one pass over the descriptors of all processes."""
        wanted = list(places)
        held = {place.netns: Sorting() for place in wanted}
        for netns, row in self._iterators.sockets():
            if netns in held:
                held[netns].add(row)
        unheld: list[tuple[Place, Sockets, frozenset[int]]] = []
        for place in wanted:
            sockets = held[place.netns].sockets()
            missing = known(place.uid) - {socket.inode for socket in sockets.listeners}
            if missing:
                unheld.append((place, sockets, missing))
            else:
                yield place.uid, sockets
        pids = pids_of_pods(self._tree, {place.uid for place, *_ in unheld}) if unheld else {}
        for place, sockets, missing in unheld:
            yield place.uid, self._with_unheld(sockets, missing, pids.get(place.uid, []))

    def _with_unheld(self, sockets: Sockets, missing: frozenset[int], pids: list[int]) -> Sockets | None:
        """Listeners that no descriptor table holds are gone only when the namespace's own list says so.

        None where /proc does not show it: nothing is known of them then.
        """
        read = read_sockets(self._proc, pids)
        if read is None:
            return None
        found = tuple(socket for socket in read.listeners if socket.inode in missing)
        return Sockets(sockets.listeners + found, sockets.outbound, sockets.malformed)

    def close(self) -> None:
        """Detach the iterators."""
        self._iterators.close()


def open_mapper(
    name: str,
    proc: str,
    tree: CgroupTree,
    *,
    own_uid: str = "",
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> Mapper:
    """The mapper of that name; `auto` is iter where it loads, else proc, and `say` is told why.

    Raises PactoError for iter alone.
    """
    if name in ("auto", "iter"):
        try:
            return IterMapper(open_iterators(), proc, tree)
        except PactoError as error:
            if name == "iter":
                raise
            say(f"mapper proc, for iter does not load: {error}")
    return ProcMapper(proc, tree, own_uid=own_uid, stop=stop)
