# SPDX-License-Identifier: MIT
"""The operator's way to its API server: the pod's own, or what a kubeconfig names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubectl_pacto import __version__
from kubectl_pacto.kube.client import Client, Tokens, Waiting
from kubectl_pacto.kube.credentials import in_cluster
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.shared import SharedAccess
from kubectl_pacto.kube.stream import Watch
from kubectl_pacto.kube.transport import HttpTransport, Server

AGENT = f"pacto-operator/{__version__}"
TIMEOUT_SECONDS = 30.0
HASTY_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Connection:
    """One server and one identity; every thread makes a client of its own."""

    server: Server
    tokens: Callable[[], Tokens | None]

    def client(self, sleep: Callable[[float], object] | None = None) -> Client:
        """A client for one thread; `sleep` is how it waits between attempts."""
        waiting = Waiting() if sleep is None else Waiting(sleep=sleep)
        transport = HttpTransport(self.server, TIMEOUT_SECONDS)
        return Client(transport, self.tokens(), agent=AGENT, waiting=waiting)

    def hasty_client(self) -> Client:
        """A client that answers well within the time a leader has to renew."""
        transport = HttpTransport(self.server, HASTY_SECONDS)
        return Client(transport, self.tokens(), agent=AGENT, retries=RetryPolicy(attempts=1))

    def watch(self) -> Watch:
        """Watches for one thread."""
        return Watch(self.server, self.tokens(), agent=AGENT)


@dataclass(frozen=True, slots=True)
class KubeconfigConnection(Connection):
    """As a kubeconfig says: whatever kubectl can do with it, in every thread."""

    access: SharedAccess

    def client(self, sleep: Callable[[float], object] | None = None) -> Client:
        """A client for one thread."""
        waiting = None if sleep is None else Waiting(sleep=sleep)
        return self.access.client(TIMEOUT_SECONDS, agent=AGENT, waiting=waiting)

    def hasty_client(self) -> Client:
        """A client that answers well within the time a leader has to renew."""
        return self.access.client(HASTY_SECONDS, agent=AGENT, retries=RetryPolicy(attempts=1))

    def watch(self) -> Watch:
        """Watches for one thread."""
        return self.access.watch(agent=AGENT)


def connect(kubeconfig: str) -> Connection:
    """The connection that the operator was told to use. Raises PactoError."""
    if kubeconfig:
        access = SharedAccess(kubeconfig)
        host, port = access.target.address
        return KubeconfigConnection(Server(host, port, tls=access.target.tls), lambda: access, access)
    server, token = in_cluster()
    del token  # each thread reads the file for itself
    return Connection(server, lambda: in_cluster()[1])
