# SPDX-License-Identifier: MIT
"""Requests to the Kubernetes API as raw JSON, with retries, fresh tokens and errors by status.

Used by the agent, and by collect and controller. Nothing here knows a resource. `requests` counts
every exchange, the retried ones too, `received` the bytes of their answers.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kubectl_pacto.kube.errors import ApiBusy, ApiError, ApiUnreachable, error_of
from kubectl_pacto.kube.retry import RETRIED, RetryPolicy, retry_after
from kubectl_pacto.kube.transport import Response, Transport, TransportError, bearer

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
MERGE_PATCH: Final = "application/merge-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = METADATA_ONLY.replace("Metadata;", "MetadataList;")
# A PUT with a resource version and a DELETE may be sent again; a POST that was cut off may have worked.
SAFE_TO_REPEAT: Final = frozenset({"GET", "PUT", "DELETE"})


class Tokens(Protocol):
    """Where the bearer token comes from."""

    def token(self) -> str:
        """The token now."""

    def reread(self) -> bool:
        """Look again; whether it changed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How a client waits: replaced in tests, and by the agent's stop event."""

    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random


class Client:
    """One API server, asked by one identity; not for several threads at once."""

    def __init__(
        self,
        transport: Transport,
        tokens: Tokens | None = None,
        *,
        agent: str = "kubectl-pacto",
        retries: RetryPolicy | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self._transport = transport
        self._tokens = tokens
        self._agent = agent
        self._retries = retries or RetryPolicy()
        self._waiting = waiting or Waiting()
        self.requests = 0
        self.received = 0

    def get(self, path: str, *, accept: str = JSON) -> dict[str, Any]:
        """One object or list; raises ApiError."""
        return self.request("GET", path, accept=accept)

    def put(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace an object; raises ApiError, ApiConflict when its resource version is not the last."""
        return self.request("PUT", path, body)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; raises ApiError, ApiConflict when it exists."""
        return self.request("POST", path, body)

    def apply(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Apply on the server's side; the path names the manager. Raises ApiError, ApiConflict."""
        return self.request("PATCH", path, body, content_type=APPLY)

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Merge into an object; raises ApiError, ApiConflict when the body names a version not the last."""
        return self.request("PATCH", path, body, content_type=MERGE_PATCH)

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Delete an object; raises ApiError, ApiNotFound when there is none."""
        return self.request("DELETE", path, body)

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> dict[str, Any]:
        """One request, repeated where that is safe; the decoded answer. Raises ApiError.

        A `body` of bytes is JSON already.
        """
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        content = body if isinstance(body, bytes | None) else json.dumps(body, separators=(",", ":")).encode()
        delays = self._retries.delays(self._waiting.chance)
        while True:
            failure, wait = self._attempt(method, path, content, headers)
            if isinstance(failure, dict):
                return failure
            delay = next(delays, None)
            if delay is None or wait is None:
                raise failure
            self._waiting.sleep(max(delay, wait))

    def _attempt(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[dict[str, Any] | ApiError, float | None]:
        """The answer, or the error and how long to wait at least; None: do not ask again."""
        try:
            response = self._authorized(method, path, content, headers)
        except TransportError as error:
            unreachable = ApiUnreachable(method=method, path=path, problem=str(error))
            return unreachable, 0.0 if method in SAFE_TO_REPEAT else None
        answer = _decode(response)
        if 200 <= response.status < 300:
            if isinstance(answer, dict):
                return answer, None
            return ApiBusy(
                method=method, path=path, status=response.status, problem="the answer is no JSON object"
            ), 0.0
        failure = error_of(method, path, response.status, answer)
        # 429 says that nothing was done, whatever the method
        again = response.status in RETRIED and (method in SAFE_TO_REPEAT or response.status == 429)
        longest = self._retries.longest_delay
        return failure, retry_after(response.headers.get("retry-after"), longest) if again else None

    def _authorized(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        response = self._exchange(method, path, content, headers)
        if response.status == 401 and self._tokens is not None and self._renewed():
            return self._exchange(method, path, content, headers)
        return response

    def _renewed(self) -> bool:
        try:
            return self._tokens is not None and self._tokens.reread()
        except OSError:
            return False

    def identity(self) -> dict[str, str]:
        """The headers that say who asks; raises TransportError where a token file cannot be read."""
        headers = {"User-Agent": self._agent}
        if self._tokens is not None:
            try:
                headers["Authorization"] = bearer(self._tokens.token())
            except OSError as error:
                raise TransportError(f"the token file cannot be read: {error.strerror}") from error
        return headers

    def _exchange(self, method: str, path: str, content: bytes | None, own: Mapping[str, str]) -> Response:
        headers = {**own, **self.identity()}
        self.requests += 1
        response = self._transport.exchange(method, path, content, headers)
        self.received += len(response.body)
        return response

    def close(self) -> None:
        """Drop the connection."""
        self._transport.close()


def _decode(response: Response) -> Any:
    try:
        return json.loads(response.body)
    except ValueError:
        return response.body[:500].decode("utf-8", "replace")
