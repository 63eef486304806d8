# SPDX-License-Identifier: MIT
"""One object that is asked for by name again and again, where lists and watches are not allowed."""

from __future__ import annotations

from typing import Final, TypeVar

from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiNotFound
from kubectl_pacto.kube.reflector import Reflector
from kubectl_pacto.kube.stream import Watch

T = TypeVar("T")
POLL_SECONDS: Final = 30.0


class PolledObject(Reflector[T]):
    """A reflector of one object; `path` names it. An object that is not there is none, not a fault."""

    poll_seconds = POLL_SECONDS

    def _list(self, client: Client) -> str:
        try:
            found = dict([self._read(client.get(self.path))])
        except ApiNotFound:
            found = {}
        self._sink.replace(found)
        self.lists += 1
        self._alive()
        self._listed.set()
        return ""

    def _follow(self, watch: Watch, version: str) -> None:  # noqa: ARG002 - a reflector's shape
        self._delays = self._fresh_delays()
        self._stop.wait(self.poll_seconds)
