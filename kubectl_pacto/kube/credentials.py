# SPDX-License-Identifier: MIT
"""Who asks: a bearer token from a file that is renewed, and the place of a pod's own API server."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping
from typing import Final

from kubectl_pacto.kube.errors import ApiUnreachable
from kubectl_pacto.kube.transport import Server

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
REREAD_SECONDS: Final = 60.0


class TokenFile:
    """A bound token: read again every minute, and at once when the server refused it."""

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at: float | None = None

    def token(self) -> str:
        """The token as the file had it a minute ago at most; raises OSError."""
        if self._read_at is None or self._clock() - self._read_at >= REREAD_SECONDS:
            self.reread()
        return self._token

    def reread(self) -> bool:
        """Read the file now; whether the token is another one. Raises OSError."""
        try:
            with open(self._path, encoding="ascii") as file:  # noqa: PTH123 - the agent's memory pays for pathlib
                token = file.read().strip()
        except UnicodeDecodeError:
            raise OSError(errno.EINVAL, "what it holds is no token") from None
        changed = token != self._token
        self._token, self._read_at = token, self._clock()
        return changed


def in_cluster(
    environment: Mapping[str, str] = os.environ, account: str = ACCOUNT
) -> tuple[Server, TokenFile]:
    """The API server of the pod this runs in; raises ApiUnreachable outside of a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not port.isdigit():
        problem = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod"
        raise ApiUnreachable(method="GET", path="/", problem=problem)
    return Server(host, int(port), ca_file=f"{account}/ca.crt"), TokenFile(f"{account}/token")
