# SPDX-License-Identifier: MIT
"""Keeps what a list and its watch say in step with the API: one thread, one kind, one store.

List, then watch from the list's version; a version that is gone (HTTP 410 or an ERROR event), or a
silence for too long, lists again, everything else opens the watch again from the last version seen.
Objects are decoded at once and their JSON dropped. Whoever reads the store asks `trouble` whether it can
be believed.
"""

from __future__ import annotations

import logging
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiError, ApiGone, ApiNotFound, ApiSilent
from kubectl_pacto.kube.lists import PAGE, list_all, with_query
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.stream import Event, Watch

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
Key = tuple[str, str]
LOG: Final = logging.getLogger(__name__)
FOR_EVER: Final = RetryPolicy(attempts=1 << 62, first_delay=0.5, longest_delay=30.0)
SILENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Broken:
    """An object whose fields have not the shape they should have."""

    why: str


class Sink(Protocol[T_contra]):
    """Where objects go; called by the reflector's thread alone."""

    def replace(self, items: Mapping[Key, T_contra | Broken]) -> None:
        """All objects there are, after a list."""

    def put(self, key: Key, item: T_contra | Broken) -> None:
        """An object that is new or has changed."""

    def drop(self, key: Key) -> None:
        """An object that is gone."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a reflector waits; `watch_seconds` is the least, a watch lasts up to twice that."""

    watch_seconds: int = 300
    missing_seconds: float = 60.0
    retries: RetryPolicy = FOR_EVER
    page: int = PAGE
    silence_seconds: float = SILENCE_SECONDS


class Reflector(Generic[T]):
    """One kind's copy; `optional` kinds may be missing from the API and are then empty."""

    def __init__(
        self,
        path: str,
        decode: Callable[[dict[str, Any]], T],
        sink: Sink[T],
        *,
        optional: bool = False,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._decode = decode
        self._sink = sink
        self._optional = optional
        self._timing = timing or Timing()
        self._clock = clock
        self._chance = random.random
        self._stop = threading.Event()
        self._listed = threading.Event()
        self._life: float | None = None
        self._problem = ""
        self._delays = self._fresh_delays()
        self._watch: Watch | None = None
        self.lists = 0
        self.broken = 0

    def _fresh_delays(self) -> Iterator[float]:
        return self._timing.retries.delays(self._chance)

    @property
    def is_listed(self) -> bool:
        """Whether the store has been complete once."""
        return self._listed.is_set()

    def wait_listed(self, timeout: float) -> bool:
        """Wait for the first list."""
        return self._listed.wait(timeout)

    @property
    def silence(self) -> float | None:
        """Seconds since the last sign of life (an answer, an event, a bookmark); None before the first."""
        life = self._life
        return None if life is None else max(0.0, self._clock() - life)

    @property
    def trouble(self) -> str:
        """Why the store cannot be believed; empty if it can."""
        silence = self.silence
        if not self._listed.is_set() or silence is None:
            return self._problem or "not listed yet"
        if silence > self._timing.silence_seconds:
            return self._problem or f"the watch has shown no sign of life for {silence:.0f} s"
        return ""

    def run(self, client: Client, watch: Watch) -> None:
        """List and watch until `stop`; never raises for what the API answers."""
        self._watch = watch
        while not self._stop.is_set():
            try:
                version = self._list(client)
            except ApiNotFound as error:
                self._missing(error)
            except ApiError as error:
                self._fail(error)
            else:
                self._follow(watch, version)

    def stop(self) -> None:
        """End the run, from another thread."""
        self._stop.set()
        if self._watch is not None:
            self._watch.stop()

    def _missing(self, error: ApiError) -> None:
        if not self._optional:
            self._fail(error)
            return
        self._sink.replace({})
        self._alive()
        self._listed.set()
        self._stop.wait(self._timing.missing_seconds * (0.5 + 0.5 * self._chance()))

    def _fail(self, error: ApiError) -> None:
        """Say it, and wait longer than the last time."""
        if self._stop.is_set():
            return
        self._problem = str(error)
        LOG.warning("%s", error)
        self._stop.wait(next(self._delays))

    def _alive(self) -> None:
        self._life, self._problem = self._clock(), ""

    def _list(self, client: Client) -> str:
        found = list_all(client, self.path, self._read, limit=self._timing.page)
        self._sink.replace(dict(found.items))
        self.lists += 1
        self._alive()
        self._listed.set()
        return found.version

    def _follow(self, watch: Watch, version: str) -> None:
        """Watch on from a version until that version is gone."""
        while not self._stop.is_set():
            try:
                version = self._watch_once(watch, version)
            except ApiGone as error:
                # the list that follows is the remedy; it waits only when it is needed again and again
                LOG.info("%s", error)
                self._stop.wait(next(self._delays))
                return
            except _Outdated:
                return
            except _Interrupted as error:
                version = error.version
                self._fail(error.cause)

    def _watch_once(self, watch: Watch, version: str) -> str:
        seconds = int(self._timing.watch_seconds * (1 + self._chance()))
        path = with_query(
            self.path, watch=1, allowWatchBookmarks="true", resourceVersion=version, timeoutSeconds=seconds
        )
        began, seen = self._clock(), False
        try:
            for event in watch.events(path):
                if self.trouble:
                    # what changed meanwhile is about to be told, and nothing says when all of it was
                    raise _Outdated
                self._alive()
                if event is None:
                    continue
                self._apply(event)
                version = event.version or version
                if not seen:
                    self._delays, seen = self._fresh_delays(), True
        except ApiGone:
            raise
        except ApiSilent as error:
            # it has waited long enough: whoever changes a quiet kind is not kept waiting as well
            LOG.info("%s", error)
        except ApiError as error:
            raise _Interrupted(version, error) from error
        if not seen and self._clock() - began < 1.0:
            # a server that ends watches at once must not be asked in a tight loop
            self._stop.wait(next(self._delays))
        return version

    def _apply(self, event: Event) -> None:
        if event.type == "BOOKMARK":
            return
        key, item = self._read(event.object)
        if event.type == "DELETED":
            self._sink.drop(key)
        else:
            self._sink.put(key, item)

    def _read(self, raw: dict[str, Any]) -> tuple[Key, T | Broken]:
        metadata = raw.get("metadata") or {}
        key = sys.intern(str(metadata.get("namespace") or "")), str(metadata.get("name") or "")
        try:
            return key, self._decode(raw)
        except MalformedObject as error:
            self.broken += 1
            LOG.warning("%s %s/%s: %s", self.path, *key, error)
            return key, Broken(str(error))


class _Outdated(Exception):
    """A watch that came back to a store which nobody believes any more."""


class _Interrupted(Exception):
    """A watch that ended by an error, and how far it had come."""

    def __init__(self, version: str, cause: ApiError) -> None:
        super().__init__(str(cause))
        self.version = version
        self.cause = cause
