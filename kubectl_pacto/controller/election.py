# SPDX-License-Identifier: MIT
"""Who leads: a Lease held for 15 s, given up 10 s after its last renewal, tried every 2 s.

Another's Lease is judged by when this process saw it change, never by the time in it. Whoever cannot
renew in time rests before anybody else can begin; if nobody did, which an API server that was gone for a
while makes sure of, it leads on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiConflict, ApiError, ApiNotFound
from kubectl_pacto.kube.paths import LEASE_API, leases
from kubectl_pacto.model.instant import format_instant

LEASE_NAME: Final = "a4917283.pacto.io"
LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease holds, when to give up renewing it, and how often to try; seconds."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Election:
    """One candidate; `run` returns when somebody else has what it had, or when it was told to stop."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        identity: str,
        *,
        terms: Terms | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._terms = terms or Terms()
        self._clock = clock
        self._wall = wall
        self._seen: tuple[object, float] | None = None
        self._held: dict[str, Any] | None = None
        self._renewed: float | None = None
        self.leads = False

    def run(self, stop: threading.Event, lead: Callable[[], None], rest: Callable[[], None]) -> bool:
        """Wait for the lead and keep it; True once stopped, False once somebody else has it.

        `lead` is called when it begins and when it goes on, `rest` when it can no longer be sure of it.
        """
        while not stop.is_set():
            began = self._clock()
            if self._attempt():
                self._renewed = began  # others count from the write, which came later
                if not self.leads:
                    LOG.info("%s leads", self._identity)
                    self.leads = True
                    lead()
            elif self._renewed is not None and self._held is None:
                self._end_lead(rest, "no longer leads: another does")
                return False
            self._rest_if_late(rest)
            stop.wait(self._terms.retry)
            self._rest_if_late(rest)
        return True

    def _end_lead(self, rest: Callable[[], None], why: str) -> None:
        self.leads = False
        rest()
        LOG.error("%s %s", self._identity, why)

    def _rest_if_late(self, rest: Callable[[], None]) -> None:
        if self._is_late():
            self._end_lead(rest, "rests: its lead could not be renewed in time")

    def _is_late(self) -> bool:
        """Whether another may lead before a request that goes out now is given up."""
        renewed = self._renewed
        return self.leads and renewed is not None and self._clock() - renewed > self._terms.renew

    def _attempt(self) -> bool:
        """Take or renew the Lease once; False, and `_held` None if somebody else has it."""
        try:
            found: Mapping[str, Any] | None = self._client.get(leases(self._namespace, LEASE_NAME))
        except ApiNotFound:
            found = None
        except ApiError as error:
            LOG.warning("%s", error)
            return False
        if found is not None and not self._may_take(found):
            self._held = None
            return False
        if self._is_late():
            return False
        try:
            if found is None:
                self._held = self._client.post(leases(self._namespace), self._body({}))
            else:
                self._held = self._client.put(leases(self._namespace, LEASE_NAME), self._body(found))
        except ApiConflict:
            return False
        except ApiError as error:
            LOG.warning("%s", error)
            return False
        return True

    def _may_take(self, found: Mapping[str, Any]) -> bool:
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder in ("", self._identity):
            return True
        mark, now = (holder, spec.get("renewTime"), found["metadata"].get("resourceVersion")), self._clock()
        if self._seen is None or self._seen[0] != mark:
            self._seen = mark, now
        return now - self._seen[1] >= float(spec.get("leaseDurationSeconds") or self._terms.lease)

    def _body(self, found: Mapping[str, Any]) -> dict[str, Any]:
        spec = dict(found.get("spec") or {})
        now = format_instant(self._wall(), digits=6)
        if spec.get("holderIdentity") != self._identity:
            if found:
                spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = now
        seconds = max(1, int(self._terms.lease))
        spec.update(holderIdentity=self._identity, leaseDurationSeconds=seconds, renewTime=now)
        metadata = found.get("metadata") or {"name": LEASE_NAME, "namespace": self._namespace}
        kept = {key: value for key, value in metadata.items() if key != "managedFields"}
        api = LEASE_API.removeprefix("/apis/")
        return {"apiVersion": api, "kind": "Lease", "metadata": kept, "spec": spec}

    def release(self) -> None:
        """Give the Lease back, so that another need not wait; once everything has stopped."""
        held, self._held, self.leads = self._held, None, False
        if held is None:
            return
        try:
            body = self._body(held)
            body["spec"].update(holderIdentity="", leaseDurationSeconds=1)
            self._client.put(leases(self._namespace, LEASE_NAME), body)
        except ApiError as error:
            LOG.warning("%s", error)
