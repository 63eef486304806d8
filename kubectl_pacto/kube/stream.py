# SPDX-License-Identifier: MIT
"""One watch as a stream of events over a connection of its own.

A read timeout bounds the silence between two pieces of the stream: bookmarks come every minute, so a
stream that is silent for longer is half open, or of a quiet kind on a store that does not tell the API
server its progress. Both are opened again. An ERROR event is an error, never an object.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.kube.client import JSON, Tokens
from kubectl_pacto.kube.errors import ApiBusy, ApiSilent, ApiUnreachable, error_of
from kubectl_pacto.kube.transport import Opener, Server, TransportError, bearer, connection_to

READ_TIMEOUT_SECONDS: Final = 75.0
LARGEST_EVENT: Final = 64 << 20
PIECE: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Event:
    """ADDED, MODIFIED, DELETED or BOOKMARK, and the object or, of a bookmark, its version alone."""

    type: str
    object: dict[str, Any]

    @property
    def version(self) -> str:
        """The resource version after this event."""
        return str((self.object.get("metadata") or {}).get("resourceVersion") or "")


class Watch:
    """Opens one watch after the other; `stop` from another thread ends the one that runs."""

    def __init__(
        self,
        server: Server,
        tokens: Tokens | None = None,
        *,
        agent: str = "kubectl-pacto",
        read_timeout: float = READ_TIMEOUT_SECONDS,
        connection: Opener | None = None,
    ) -> None:
        self._open_connection = connection or (lambda: connection_to(server, read_timeout))
        self._tokens = tokens
        self._agent = agent
        self._read_timeout = read_timeout
        self._socket: socket.socket | None = None
        self._stopped = False
        self.opened = 0

    def events(self, path: str) -> Iterator[Event | None]:
        """None once the server has accepted the watch, then its events. Raises ApiError."""
        connection, accepted = None, False
        try:
            connection = self._open_connection()
            answer = self._open(connection, path)
            accepted = True
            yield None
            for line in _lines(answer):
                yield _event(path, line)
        except TransportError as error:
            raise ApiUnreachable(method="GET", path=path, problem=str(error)) from error
        except TimeoutError as error:
            if accepted:
                raise ApiSilent(method="GET", path=path, seconds=self._read_timeout) from error
            problem = f"no answer within {self._read_timeout:.0f} s"
            raise ApiUnreachable(method="GET", path=path, problem=problem) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: json, and a socket that was closed under a read
            problem = f"{type(error).__name__}: {error}"
            raise ApiUnreachable(method="GET", path=path, problem=problem) from error
        finally:
            self._socket = None
            if connection is not None:
                connection.close()

    def _open(self, connection: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
        answer = self._ask(connection, path)
        if answer.status == 401 and self._tokens is not None and self._tokens.reread():
            answer.read()
            connection.close()
            answer = self._ask(connection, path)
        if answer.status != 200:
            text = answer.read(PIECE)
            try:
                status = json.loads(text)
            except ValueError:
                status = text.decode("utf-8", "replace")
            raise error_of("GET", path, answer.status, status)
        return answer

    def _ask(self, connection: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
        headers = {"Accept": JSON, "User-Agent": self._agent}
        if self._tokens is not None and (token := self._tokens.token()):
            headers["Authorization"] = bearer(token)
        self.opened += 1
        connection.connect()
        self._socket = connection.sock
        if self._stopped:
            raise OSError("stopped")
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def stop(self) -> None:
        """End the watch that runs, and refuse others; may be called twice."""
        self._stopped = True
        running = self._socket
        if running is not None:
            with contextlib.suppress(OSError):
                # what a TLS socket adds to this is no business of another thread's
                socket.socket.shutdown(running, socket.SHUT_RDWR)


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    rest = bytearray()
    while piece := answer.read1(PIECE):
        start = len(rest)
        rest += piece
        if b"\n" not in piece:
            if len(rest) > LARGEST_EVENT:
                raise http.client.HTTPException(f"an event of more than {LARGEST_EVENT >> 20} MiB")
            continue
        end = rest.rindex(b"\n", start)
        lines = bytes(rest[:end]).split(b"\n")
        del rest[: end + 1]
        yield from (line for line in lines if line.strip())


def _event(path: str, line: bytes) -> Event:
    raw = json.loads(line)
    kind, item = raw.get("type"), raw.get("object")
    if not isinstance(item, dict):
        raise ApiBusy(method="GET", path=path, status=200, problem="an event without an object")
    if kind == "ERROR":
        raise error_of("GET", path, int(item.get("code") or 500), item)
    return Event(str(kind), item)
