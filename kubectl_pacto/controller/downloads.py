# SPDX-License-Identifier: MIT
"""Contracts from registries, fetched beside the checks: no check ever waits for a registry.

A check takes what was fetched last, and comes again when that turns out to be old. While a registry
cannot be reached, what it said last in this process stands; what it refuses or no longer has does not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kubectl_pacto.collect.contracts import CONTRACT_FILE, RESULT_SECONDS, Bundle, Contracts
from kubectl_pacto.collect.credentials import Credentials, from_secret
from kubectl_pacto.collect.registry_errors import (
    BadPullSecret,
    RegistryError,
    RegistryUnreachable,
    Unavailable,
)
from kubectl_pacto.conformance.source import Loaded, load_failed, loaded_bundle
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiBusy, ApiError, ApiUnreachable
from kubectl_pacto.kube.paths import namespaced
from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.model.ociref import OciRef, parse_oci_ref
from kubectl_pacto.model.pacto import Pacto

LOG: Final = logging.getLogger(__name__)
PER_HOST: Final = 2
WAIT_SECONDS: Final = 1.0
# nobody answered: that says nothing of the contract
PASSING: Final = (RegistryUnreachable, ApiUnreachable, ApiBusy)


def own_credentials(client: Client, pacto: Pacto, ref: OciRef) -> Credentials | None:
    """What a Pacto's own pull secret holds for a registry: the only Secret whose data is ever read.

    Read for each use and never kept. Raises ApiError, BadPullSecret.
    """
    if not pacto.pull_secret:
        return None
    return from_secret(client.get(secret_path(pacto)), ref.registry)


def secret_path(pacto: Pacto) -> str:
    """Where a Pacto's pull secret is served."""
    return namespaced("/api/v1", pacto.namespace, "secrets", pacto.pull_secret)


def needed(loaded: Loaded) -> dict[str, bytes]:
    """The files of a bundle that checks read: not the interfaces' specifications, which are most of it."""
    contract, files = loaded.validated.contract, loaded.files or {}
    names = {CONTRACT_FILE}
    if contract is not None:
        names |= {item.schema for item in contract.configurations}
        names |= {item.schema for item in contract.policies}
    return {name: files[name] for name in names & files.keys()}


def _is_same(one: Bundle, other: Bundle) -> bool:
    return (one.digest, one.resolved_ref) == (other.digest, other.resolved_ref)


@dataclass(slots=True)
class _Entry:
    """What is known of one Pacto's contract; `at` by the monotonic clock."""

    pacto: Pacto
    loaded: Loaded | None = None
    bundle: Bundle | None = None
    at: float = 0.0
    is_asked: bool = False
    is_running: bool = False
    is_outdated: bool = False

    def is_for(self, pacto: Pacto) -> bool:
        """Whether this is still what the Pacto asks for."""
        mine = self.pacto
        return (mine.oci, mine.pull_secret, mine.overrides) == (pacto.oci, pacto.pull_secret, pacto.overrides)

    def is_fresh(self, now: float) -> bool:
        """Whether nothing needs to be asked: for a while, and for ever where a digest says what it is."""
        ref = parse_oci_ref(self.pacto.oci)
        is_fixed = self.bundle is not None and ref is not None and bool(ref.digest)
        return self.loaded is not None and (is_fixed or now - self.at < RESULT_SECONDS)


class Downloads:
    """Used by all workers; each thread of its own runs `work`. `changed` hears of a contract that changed."""

    def __init__(
        self,
        contracts: Contracts,
        changed: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._contracts = contracts
        self._changed = changed
        self._clock = clock
        self._news = threading.Condition()
        self._entries: dict[Key, _Entry] = {}
        # registry -> the keys that wait for it; a slow one holds up its own alone
        self._lanes: OrderedDict[str, deque[Key]] = OrderedDict()
        self._busy: dict[str, int] = {}

    def get(self, pacto: Pacto) -> Loaded | None:
        """The contract as it was fetched last; None while it is fetched for the first time."""
        key = pacto.namespace, pacto.name
        with self._news:
            entry = self._entries.get(key)
            if entry is None or not entry.is_for(pacto):
                entry = self._entries[key] = _Entry(pacto)
            if not entry.is_fresh(self._clock()):
                self._ask(key, entry)
            return entry.loaded

    def expire(self, key: Key) -> None:
        """Have a contract fetched again now: its pull secret has changed."""
        with self._news:
            entry = self._entries.get(key)
            if entry is not None:
                entry.is_outdated = entry.is_running
                self._ask(key, entry)

    def forget(self, key: Key) -> None:
        """A Pacto that is gone, or that needs no registry any more."""
        with self._news:
            self._entries.pop(key, None)

    def _ask(self, key: Key, entry: _Entry) -> None:
        if entry.is_asked:
            return
        entry.is_asked = True
        ref = parse_oci_ref(entry.pacto.oci)
        self._lanes.setdefault(ref.registry if ref is not None else "", deque()).append(key)
        self._news.notify()

    def work(self, client: Client, stop: threading.Event) -> None:
        """Fetch one contract after the other until `stop`."""
        while not stop.is_set():
            taken = self._take()
            if taken is None:
                continue
            host, key = taken
            try:
                self._fetch(client, key)
            finally:
                with self._news:
                    self._busy[host] -= 1
                    if not self._busy[host]:
                        del self._busy[host]
                    self._news.notify()

    def close(self) -> None:
        """Wake all threads, so that they see that they should end."""
        with self._news:
            self._news.notify_all()

    def _take(self) -> tuple[str, Key] | None:
        with self._news:
            for host in self._lanes:
                if self._busy.get(host, 0) < PER_HOST:
                    break
            else:
                self._news.wait(WAIT_SECONDS)
                return None
            key = self._lanes[host].popleft()
            if self._lanes[host]:
                self._lanes.move_to_end(host)
            else:
                del self._lanes[host]
            self._busy[host] = self._busy.get(host, 0) + 1
            return host, key

    def _fetch(self, client: Client, key: Key) -> None:
        with self._news:
            entry = self._entries.get(key)
            if entry is None or entry.is_running or not entry.is_asked:
                return
            entry.is_running = True
            bundle, before = entry.bundle, entry.loaded
        found, loaded = self._load(client, entry, bundle)
        with self._news:
            entry.bundle, entry.loaded, entry.at = found, loaded, self._clock()
            entry.is_asked = entry.is_running = False
            if entry.is_outdated:
                entry.is_outdated = False
                self._ask(key, entry)
            is_news = loaded != before and self._entries.get(key) is entry
        if is_news:
            self._changed(key)

    def _load(self, client: Client, entry: _Entry, bundle: Bundle | None) -> tuple[Bundle | None, Loaded]:
        """What a registry says now; what it said before where nothing changed, or nobody answers."""
        pacto = entry.pacto
        try:
            ref = parse_oci_ref(pacto.oci)
            credentials = own_credentials(client, pacto, ref) if ref is not None else None
            found = self._contracts.load(pacto.oci, credentials, bundle)
            if bundle is not None and entry.loaded is not None and _is_same(found, bundle):
                return bundle, entry.loaded
            loaded = loaded_bundle(pacto, found.contract, found.resolved_ref, found.files, found.digest)
            kept = needed(loaded)
            return replace(found, files=kept), replace(loaded, files=kept)
        except PASSING as error:
            LOG.warning("%s/%s: %s", pacto.namespace, pacto.name, error)
            if bundle is not None and entry.loaded is not None:
                return bundle, entry.loaded
            return None, load_failed(str(error), is_unavailable=True)
        except (Unavailable, BadPullSecret) as error:
            return None, load_failed(str(error), is_unavailable=True)
        except RegistryError as error:
            return None, load_failed(str(error), is_unavailable=False)
        except ApiError as error:
            return None, load_failed(f"pull secret {pacto.pull_secret}: {error}", is_unavailable=True)
        except Exception:
            # one artifact that nothing here foresaw must not end the thread for all others
            LOG.exception("%s/%s: its contract could not be read", pacto.namespace, pacto.name)
            return None, load_failed("its contract could not be read", is_unavailable=True)
