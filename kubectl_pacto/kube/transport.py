# SPDX-License-Identifier: MIT
"""One HTTP exchange at a time with one API server, over a connection that is kept.

The standard library's client on purpose: the agent pays for every import out of its memory
request. A read timeout bounds every exchange, so that a half-open connection is noticed.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

TIMEOUT_SECONDS: Final = 10.0
LARGEST_ANSWER: Final = 256 << 20
# no server closes a connection that has been idle for so short a time
FRESH_SECONDS: Final = 5.0


class TransportError(Exception):
    """The exchange did not come to an answer; the connection is closed."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, whole; header names in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport(Protocol):
    """What a client needs of HTTP; tests have one that answers from memory."""

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send one request and read its answer; raises TransportError."""

    def close(self) -> None:
        """Drop the connection; a later exchange opens another."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where an API server is and how to trust it. `ca_file` empty: the system's authorities."""

    host: str
    port: int
    tls: bool = True
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    server_name: str = ""
    verify: bool = True


class _NamedConnection(http.client.HTTPSConnection):
    """TLS to one address under, where given, another name (kubeconfig's tls-server-name)."""

    def __init__(self, server: Server, timeout: float) -> None:
        self._tls = _context(server)
        self._name = server.server_name or server.host
        super().__init__(server.host, server.port, timeout=timeout, context=self._tls)

    def connect(self) -> None:
        """Connect and shake hands."""
        raw = socket.create_connection((self.host, self.port), self.timeout)
        # as the base class has it: a body that waited for its headers' acknowledgement took 40 ms
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._tls.wrap_socket(raw, server_hostname=self._name)


def connection_to(server: Server, timeout: float) -> http.client.HTTPConnection:
    """A connection that is not yet made; `timeout` bounds each step of it."""
    if not server.tls:
        return http.client.HTTPConnection(server.host, server.port, timeout=timeout)
    return _NamedConnection(server, timeout)


Opener = Callable[[], http.client.HTTPConnection]


class HttpTransport:
    """HTTP/1.1 over one kept connection; not for several threads at once."""

    def __init__(
        self,
        server: Server,
        timeout: float = TIMEOUT_SECONDS,
        *,
        connection: Opener | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._used_at = 0.0
        self._open_connection = connection or (lambda: connection_to(server, timeout))
        self._connection: http.client.HTTPConnection | None = None

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send and read; a kept connection that the server closed meanwhile is opened again once."""
        is_create = method == "POST"
        if is_create and self._clock() - self._used_at >= FRESH_SECONDS:
            self.close()  # sent twice it might create twice, so it never goes out on a stale connection
        kept = self._connection is not None
        try:
            return self._once(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            if is_create or not kept:
                raise TransportError(_words(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise TransportError(_words(error)) from error
        try:
            return self._once(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise TransportError(_words(error)) from error

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        if self._connection is None:
            self._connection = self._open_connection()
        self._connection.request(method, path, body=body, headers=dict(headers))
        answer = self._connection.getresponse()
        content = answer.read(LARGEST_ANSWER + 1)
        if len(content) > LARGEST_ANSWER:
            raise http.client.HTTPException(f"an answer of more than {LARGEST_ANSWER >> 20} MiB")
        found = {name.lower(): value for name, value in answer.getheaders()}
        self._used_at = self._clock()
        if answer.will_close:
            self.close()
        return Response(answer.status, content, found)

    def close(self) -> None:
        """Drop the connection; may be called twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _context(server: Server) -> ssl.SSLContext:
    """Made for each connection: authority and key files may have been renewed since the last."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif server.ca_file:
        context.load_verify_locations(server.ca_file)
    else:
        context.load_default_certs()
    if server.certificate_file:
        context.load_cert_chain(server.certificate_file, server.key_file or None)
    return context


def bearer(token: str) -> str:
    """The Authorization of a token. Raises TransportError, which does not show it, if it cannot be sent."""
    if token.isascii() and (token.isprintable() or not token):
        return f"Bearer {token}"
    raise TransportError("the bearer token has characters that no header can hold")


def _words(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
