# SPDX-License-Identifier: MIT
"""The plugin's way to an API server: inline certificates, a path prefix, a proxy, impersonation.

Adds to the shared transport what only a kubeconfig asks for. Remembers the server's clock, by which
heartbeats are judged: a laptop's may be wrong.
"""

from __future__ import annotations

import http.client
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

from kubectl_pacto.kube.connect_errors import CredentialProblem
from kubectl_pacto.kube.transport import HttpTransport, Response, Server, TransportError


@dataclass(frozen=True, slots=True)
class Identity:
    """A client certificate: files, or PEM text that wins over them."""

    certificate_file: str = ""
    key_file: str = ""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how to connect; `headers` go with every request, in order, names may repeat."""

    url: str
    server_name: str = ""
    verify: bool = True
    authority_file: str = ""
    authority: str = ""
    proxy: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    user: str = ""

    @property
    def tls(self) -> bool:
        """Whether the server is asked over TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "localhost", parts.port or (443 if self.tls else 80)

    @property
    def prefix(self) -> str:
        """The path before every request's own."""
        return urlsplit(self.url).path.rstrip("/")


class _Connection(http.client.HTTPSConnection):
    """One connection, through a proxy's tunnel where there is one; sends the target's headers."""

    def __init__(self, target: Target, context: ssl.SSLContext, timeout: float | None) -> None:
        host, port = target.address
        proxy = urlsplit(target.proxy) if target.proxy else None
        if proxy is None:
            super().__init__(host, port, timeout=timeout, context=context)
        else:
            super().__init__(proxy.hostname or "", proxy.port or 80, timeout=timeout, context=context)
            self.set_tunnel(host, port, headers=_proxy_authorization(proxy.username, proxy.password))
        self._tls_context = context
        self._target = target

    def connect(self) -> None:
        """Connect, and shake hands where the target speaks TLS."""
        http.client.HTTPConnection.connect(self)
        if self._target.tls:
            name = self._target.server_name or self._target.address[0]
            self.sock = self._tls_context.wrap_socket(self.sock, server_hostname=name)

    def endheaders(self, message_body: object = None, *, encode_chunked: bool = False) -> None:
        """Send the headers, the target's after the request's own: a dict could not repeat a name."""
        for name, value in self._target.headers:
            self.putheader(name, value)
        super().endheaders(message_body, encode_chunked=encode_chunked)  # type: ignore[arg-type]


class _Prefixed(_Connection):
    """For who asks by plain paths."""

    def putrequest(self, method: str, url: str, *more: bool, **options: bool) -> None:
        """Begin a request."""
        super().putrequest(method, self._target.prefix + url, *more, **options)


def _proxy_authorization(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    from base64 import b64encode
    from urllib.parse import unquote

    pair = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(pair).decode()}"}


class PluginTransport(HttpTransport):
    """An HTTP transport as a kubeconfig describes it. `timeout` None waits without end."""

    def __init__(self, target: Target, identity: Identity, timeout: float | None) -> None:
        host, port = target.address
        super().__init__(Server(host, port, tls=target.tls), connection=self._connect)
        self._target, self._identity, self._limit = target, identity, timeout
        self._context: ssl.SSLContext | None = None
        self._clock_offset: float | None = None

    def use(self, certificate: str, key: str) -> None:
        """Present this certificate from the next connection on."""
        self._identity = replace(self._identity, certificate=certificate, key=key)
        self._context = None
        self.close()

    def now(self) -> float:
        """POSIX seconds by the server's clock as its last answer told; by ours before the first."""
        return time.time() + (self._clock_offset or 0.0)

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send one request and read its answer; raises TransportError naming the server."""
        kept = {name: value for name, value in headers.items() if value != "Bearer "}
        try:
            response = super().exchange(method, self._target.prefix + path, body, kept)
        except TransportError as error:
            reason = getattr(error.__cause__, "strerror", None) or str(error)
            raise TransportError(f"{self._target.url}: {reason}") from error.__cause__
        self._note_clock(response.headers.get("date", ""))
        return response

    def await_event(self, path: str, headers: Mapping[str, str], seconds: float) -> bool | None:
        """Wait on a connection of its own for the first event of a watch: True; False: none came in time.

        None where the server gives no watch at once: refused, or its version is too old.
        """
        connection = self._connect()
        connection.timeout = seconds
        kept = {name: value for name, value in headers.items() if value != "Bearer "}
        accepted = None
        try:
            connection.request("GET", self._target.prefix + path, headers=kept)
            answer = connection.getresponse()
            accepted = False if answer.status == 200 else None
            line = answer.readline() if answer.status == 200 else b""
            return accepted if not line.strip() else (None if b'"ERROR"' in line[:40] else True)
        except (OSError, http.client.HTTPException):
            return accepted
        finally:
            connection.close()

    def _note_clock(self, date: str) -> None:
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return
        # the header has whole seconds, cut: within one second of ours both clocks agree
        offset = told + 0.5 - time.time()
        self._clock_offset = 0.0 if abs(offset) <= 1.5 else offset

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            self._context = _tls_context(self._target, self._identity)
        return _Connection(self._target, self._context, self._limit)


def connection_to_target(target: Target, identity: Identity, timeout: float) -> http.client.HTTPConnection:
    """A connection that is not yet made, whose paths go after the server's own. Raises CredentialProblem."""
    return _Prefixed(target, _tls_context(target, identity), timeout)


def _tls_context(target: Target, identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not target.tls:
        return context
    try:
        if not target.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif target.authority:
            context.load_verify_locations(cadata=target.authority)
        elif target.authority_file:
            context.load_verify_locations(target.authority_file)
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        where = target.authority_file or "certificate-authority-data"
        raise CredentialProblem(user=target.user, problem=f"{where}: {_words(error)}") from None
    _present(context, target.user, identity)
    return context


def _present(context: ssl.SSLContext, user: str, identity: Identity) -> None:
    try:
        if identity.certificate or identity.key:
            certificate = identity.certificate or Path(identity.certificate_file).read_text()
            key = identity.key or Path(identity.key_file).read_text()
            with _readable(f"{certificate}\n{key}\n".encode()) as path:
                context.load_cert_chain(path)
        elif identity.certificate_file:
            context.load_cert_chain(identity.certificate_file, identity.key_file or None)
    except (OSError, ValueError) as error:
        where = identity.certificate_file or "client-certificate-data"
        raise CredentialProblem(user=user, problem=f"{where}: {_words(error)}") from None


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path under which OpenSSL can read content: in memory where the system can, else a private file."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pacto")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "identity.pem")
        path.touch(mode=0o600)
        path.write_bytes(content)
        yield str(path)


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
