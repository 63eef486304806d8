# SPDX-License-Identifier: MIT
"""The API server: one object and one Lease, both named after the node.

The Lease vouches for the object. It is renewed only when the last write was acknowledged and a read
of the object's metadata, two intervals old at most, returned that write's resource version; of an
object that is missing or somebody else's the publisher is told, which writes it again first. No watch,
no list, no delete: a quiet node costs two requests per interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.kube import paths
from kubectl_pacto.kube.client import JSON, METADATA_ONLY, Client
from kubectl_pacto.kube.errors import ApiConflict, ApiError, ApiNotFound
from pacto_agent.budget import encoded

WRITES: Final = 3  # of one object in a row, when somebody else writes it too
# the most that one publish asks for, each with the client's attempts: object and Lease, looked up and
# written WRITES times each
REQUESTS_PER_PUBLISH: Final = 2 * 2 * WRITES


class _Held:
    """One object of ours in the API server, and the resource version of our last acknowledged write."""

    def __init__(self, client: Client, collection: str, path: str) -> None:
        self._client = client
        self._collection = collection
        self._path = path
        self.version = ""  # empty: what the server holds is unknown

    def read(self, accept: str = JSON) -> dict[str, Any] | None:
        """The object as the server has it, None for none; raises ApiError."""
        try:
            return self._client.get(self._path, accept=accept)
        except ApiNotFound:
            return None

    def is_ours(self) -> bool:
        """Whether the server holds our last write; raises ApiError."""
        found = self.read(METADATA_ONLY) if self.version else None
        return found is not None and _version(found) == self.version

    def write(self, raw: dict[str, Any]) -> None:
        """Replace or create; raises ApiError, and then the version is empty."""
        version, self.version = self.version, ""
        for attempt in range(WRITES):
            try:
                self.version = _version(self._put(raw, version))
                return
            except (ApiConflict, ApiNotFound):
                if attempt == WRITES - 1:
                    raise
                version = ""

    def _put(self, raw: dict[str, Any], version: str) -> dict[str, Any]:
        if not version:
            found = self.read(METADATA_ONLY)
            if found is None:
                return self._client.request("POST", self._collection, encoded(raw), accept=METADATA_ONLY)
            version = _version(found)
        # of a write only the version is read: the whole object need not come back
        body = encoded({**raw, "metadata": {**raw["metadata"], "resourceVersion": version}})
        return self._client.request("PUT", self._path, body, accept=METADATA_ONLY)


class KubernetesSink:
    """Holds the view of node `name` in the API server; `client` is this sink's own."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._interval = interval
        self._clock = clock
        self._object = _Held(
            client, paths.node_observations(namespace), paths.node_observations(namespace, name)
        )
        self._lease = _Held(client, paths.leases(namespace), paths.leases(namespace, name))
        self._checked_at = 0.0

    @property
    def requests(self) -> int:
        """Requests made so far."""
        return self._client.requests

    def load(self) -> dict[str, Any] | None:
        """The object that an agent before this one left, None for none; raises SinkFailed."""
        with _as_sink_failed():
            return self._object.read()

    def put(self, observation: dict[str, Any]) -> None:
        """Write the object; raises SinkFailed, and then nothing vouches until a write is acknowledged."""
        with _as_sink_failed():
            self._object.write(observation)
        self._checked_at = self._clock()

    def renew(self, lease: dict[str, Any]) -> bool:
        """Renew the Lease if the server is sure to hold what was put last, else return False."""
        with _as_sink_failed():
            # a check is due after one interval, so that none is older than two when it vouches
            if not self._object.version or self._clock() - self._checked_at >= self._interval:
                if not self._object.is_ours():
                    return False
                self._checked_at = self._clock()
            self._lease.write(lease)
            return True


@contextmanager
def _as_sink_failed() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise SinkFailed(sink="kubernetes", problem=str(error)) from error


def _version(raw: dict[str, Any]) -> str:
    return str(raw.get("metadata", {}).get("resourceVersion", ""))
