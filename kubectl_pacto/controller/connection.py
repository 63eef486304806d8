# SPDX-License-Identifier: MIT
"""The operator's way to its API server: the pod's own, or what a kubeconfig with files names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from kubectl_pacto import __version__
from kubectl_pacto.kube.client import Client, Tokens, Waiting
from kubectl_pacto.kube.connect_errors import ConfigProblem
from kubectl_pacto.kube.credentials import TokenFile, in_cluster
from kubectl_pacto.kube.kubeconfig import Flags, choose, load
from kubectl_pacto.kube.retry import RetryPolicy
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


def connect(kubeconfig: str) -> Connection:
    """The connection that the operator was told to use. Raises PactoError."""
    if not kubeconfig:
        server, token = in_cluster()
        del token  # each thread reads the file for itself
        return Connection(server, lambda: in_cluster()[1])
    flags = Flags(kubeconfig=kubeconfig)
    choice = choose(load(flags), flags)
    url = urlsplit(choice.server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ConfigProblem(file=kubeconfig, problem=f"server {choice.server!r} is no URL")
    for entry in (choice.cluster, choice.user):
        if inline := [name for name in entry.fields.names() if name.endswith("-data") or name == "exec"]:
            raise ConfigProblem(file=kubeconfig, problem=f"{inline[0]}: the operator reads files alone")
    token_file = choice.user.path("tokenFile")
    server = Server(
        url.hostname,
        url.port or (443 if url.scheme == "https" else 80),
        tls=url.scheme == "https",
        ca_file=choice.cluster.path("certificate-authority"),
        certificate_file=choice.user.path("client-certificate"),
        key_file=choice.user.path("client-key"),
        server_name=choice.cluster.fields.text("tls-server-name"),
    )
    return Connection(server, lambda: TokenFile(token_file) if token_file else None)
