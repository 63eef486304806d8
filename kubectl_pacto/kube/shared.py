# SPDX-License-Identifier: MIT
"""What a kubeconfig says, for many threads: one identity and one credential program behind all clients.

Everything that the plugin can read of a kubeconfig (inline certificates, credential programs, a proxy,
impersonation) for a process that runs for long.
"""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import Client, Waiting
from kubectl_pacto.kube.connect import identity_of, target_of, tokens_of
from kubectl_pacto.kube.connect_errors import ConfigProblem, CredentialProblem, PluginFailed, PluginMissing
from kubectl_pacto.kube.connect_transport import Identity, PluginTransport, connection_to_target
from kubectl_pacto.kube.kubeconfig import Flags, choose, load
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.stream import READ_TIMEOUT_SECONDS, Watch
from kubectl_pacto.kube.transport import Response, Server, TransportError

# several threads are refused at once when a credential has expired: one renewal serves them all
RENEWED_SECONDS: Final = 5.0


class SharedAccess:
    """One server and identity. Raises PactoError when made, if the kubeconfig cannot be used."""

    def __init__(
        self,
        kubeconfig: str,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        flags = Flags(kubeconfig=kubeconfig)
        choice = choose(load(flags, environment), flags)
        if not choice.server:
            raise ConfigProblem(file=kubeconfig, problem="it names no server")
        try:
            self.target = target_of(choice.server, choice, flags, environment)
            self.identity = identity_of(choice, flags) if self.target.tls else Identity()
            self._source = tokens_of(choice, flags, self, self.target) if self.target.tls else None
        except MalformedObject as error:
            raise ConfigProblem(file=kubeconfig, problem=str(error)) from None
        self._clock = clock
        self._lock = threading.Lock()
        self._renewed_at = float("-inf")
        self._is_renewed = False

    def use(self, certificate: str, key: str) -> None:
        """Present this certificate from each thread's next connection on."""
        self.identity = replace(self.identity, certificate=certificate, key=key)

    def token(self) -> str:
        """The bearer token now; empty where there is none. Raises TransportError, OSError."""
        with self._lock:
            try:
                return self._source.token() if self._source is not None else ""
            except (PluginFailed, PluginMissing, CredentialProblem) as error:
                raise TransportError(str(error)) from error

    def reread(self) -> bool:
        """Look again, but for what another thread renewed just now; whether it changed."""
        with self._lock:
            if self._source is None:
                return False
            if self._clock() - self._renewed_at >= RENEWED_SECONDS:
                try:
                    self._is_renewed = self._source.reread()
                except (PluginFailed, PluginMissing, CredentialProblem) as error:
                    raise TransportError(str(error)) from error
                self._renewed_at = self._clock()
            return self._is_renewed

    def client(
        self,
        timeout: float,
        *,
        agent: str,
        retries: RetryPolicy | None = None,
        waiting: Waiting | None = None,
    ) -> Client:
        """A client for one thread."""
        return Client(_Following(self, timeout), self, agent=agent, retries=retries, waiting=waiting)

    def watch(self, *, agent: str) -> Watch:
        """Watches for one thread."""
        host, port = self.target.address

        def connect() -> http.client.HTTPConnection:
            self.token()  # a certificate that a program gives must be there before the connection is made
            try:
                return connection_to_target(self.target, self.identity, READ_TIMEOUT_SECONDS)
            except CredentialProblem as error:
                raise TransportError(str(error)) from error

        server = Server(host, port, tls=self.target.tls)
        return Watch(server, self, agent=agent, connection=connect)


class _Following(PluginTransport):
    """Presents what the shared identity is by now. `timeout` in seconds."""

    def __init__(self, shared: SharedAccess, timeout: float) -> None:
        super().__init__(shared.target, shared.identity, timeout)
        self._shared = shared

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send one request and read its answer; raises TransportError."""
        now = self._shared.identity
        if now != self._identity:
            self.use(now.certificate, now.key)
        try:
            return super().exchange(method, path, body, headers)
        except CredentialProblem as error:
            raise TransportError(str(error)) from error
