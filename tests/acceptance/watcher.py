# SPDX-License-Identifier: MIT
"""Every status that any Pacto has had, as the API server told it: nothing between two polls is missed.

Its own client on purpose: what the product's reflectors lose must not be lost here, too.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from tests.cluster.api import Api, ApiError, Object

API: Final = "pacto.trianalab.io/v1alpha1"
Key = tuple[str, str]


@dataclass(frozen=True)
class Seen:
    """A status, and when it was told, by the monotonic and by the machine's clock."""

    at: float
    wall: float
    status: Object


class Watcher:
    """Follows the Pactos of a cluster until it is stopped; goes on after an API server that was away."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._seen: defaultdict[Key, list[Seen]] = defaultdict(list)
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; the kind may not be served yet."""
        self._thread.start()

    def stop(self) -> None:
        """End; the last stream ends with its time."""
        self._stop.set()

    def history(self, key: Key, since: float = 0.0) -> list[Seen]:
        """What a Pacto's status said since a monotonic time; first what it said at that time."""
        with self._news:
            known = list(self._seen.get(key, ()))
        before = [one for one in known if one.at <= since]
        return before[-1:] + [one for one in known if one.at > since]

    def status(self, key: Key) -> Object:
        """The latest status; empty before there is one."""
        with self._news:
            known = self._seen.get(key)
            return known[-1].status if known else {}

    def wait(self, timeout: float) -> None:
        """Until something is told, or the time is over."""
        with self._news:
            self._news.wait(timeout)

    def _run(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(OSError, ApiError, ValueError, http.client.HTTPException):
                self._follow()
            self._stop.wait(0.3)

    def _follow(self) -> None:
        listed = json.loads(self._api.raw("GET", f"/apis/{API}/pactos"))
        for item in listed["items"]:
            self._take(item)
        version = listed["metadata"]["resourceVersion"]
        query = f"watch=1&resourceVersion={version}&timeoutSeconds=20"
        connection = http.client.HTTPSConnection(
            self._api.host, self._api.port, context=self._api.tls, timeout=30
        )
        try:
            connection.request("GET", f"/apis/{API}/pactos?{query}", headers={"Accept": "application/json"})
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                return  # a server that has just started may refuse
            while line := answer.readline():
                event: dict[str, Any] = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._take(event["object"])
                if self._stop.is_set():
                    return
        finally:
            connection.close()

    def _take(self, item: Object) -> None:
        key = item["metadata"]["namespace"], item["metadata"]["name"]
        status = item.get("status") or {}
        with self._news:
            known = self._seen[key]
            if not known or known[-1].status != status:
                known.append(Seen(time.monotonic(), time.time(), status))
                self._news.notify_all()
