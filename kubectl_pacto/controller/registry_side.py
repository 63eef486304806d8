# SPDX-License-Identifier: MIT
"""Everything that asks registries: downloads, the mirror and the look at pull secrets, each in threads
of its own, so that no check waits for any of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from kubectl_pacto.collect.live import Table
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.controller.downloads import Downloads
from kubectl_pacto.controller.loader import contracts
from kubectl_pacto.controller.mirror import MIRROR_SECONDS, Mirror
from kubectl_pacto.controller.pull_secrets import LOOK_SECONDS, PullSecrets
from kubectl_pacto.controller.revision_table import Revision, RevisionTable
from kubectl_pacto.controller.revisions import Revisions
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.reflector import Key

LOG: Final = logging.getLogger(__name__)
DOWNLOADERS: Final = 8
REST_SECONDS: Final = 1.0  # how soon a round is due once the lead is sure again
Work = Callable[[Client, threading.Event], None]


class RegistrySide:
    """`check` has a Pacto checked. Its threads write while `leads` says so."""

    def __init__(
        self,
        insecure: tuple[str, ...],
        pactos: Table[Known],
        check: Callable[[Key], None],
        *,
        leads: Callable[[], bool] = lambda: True,
        mirror_seconds: float = MIRROR_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._pactos, self._check, self._leads = pactos, check, leads
        self.revisions = Revisions(RevisionTable(self._revision_lost))
        self._seconds = mirror_seconds, look_seconds
        self.downloads = Downloads(contracts(insecure), check)
        self.mirror = Mirror(pactos, self.revisions, contracts(insecure), moved=self._changed)
        self.secrets = PullSecrets(pactos, self._changed)

    def _changed(self, key: Key) -> None:
        self.downloads.expire(key)
        self._check(key)

    def _revision_lost(self, before: Revision) -> None:
        # one that somebody deleted is made again
        owner = before.namespace, before.pacto
        known = self._pactos.get(owner)
        if known is None or known.uid != before.owner:
            return
        self.mirror.revision_lost(owner)
        if known.revision == before.name:
            self._check(owner)

    def close(self) -> None:
        """Let no thread wait any longer; call it once they are told to stop."""
        self.downloads.close()

    def work(self) -> dict[str, Work]:
        """What to run, by the name of its thread."""
        found: dict[str, Work] = {f"registry {number}": self.downloads.work for number in range(DOWNLOADERS)}
        found["mirror"] = partial(_again_and_again, self.mirror.round, self._seconds[0], self._leads)
        found["pull secrets"] = partial(_again_and_again, self.secrets.round, self._seconds[1], self._leads)
        return found


class _Unsure(threading.Event):
    """Set for a round that should end: the process does, or the lead is not sure any more."""

    def __init__(self, stop: threading.Event, leads: Callable[[], bool]) -> None:
        super().__init__()
        self._stop, self._leads = stop, leads

    def is_set(self) -> bool:
        return self._stop.is_set() or not self._leads()

    def wait(self, timeout: float | None = None) -> bool:
        return self._stop.wait(timeout) or self.is_set()


def _again_and_again(
    work: Work, seconds: float, leads: Callable[[], bool], client: Client, stop: threading.Event
) -> None:
    while not stop.is_set():
        if not leads():
            stop.wait(REST_SECONDS)
            continue
        try:
            work(client, _Unsure(stop, leads))
        except Exception:
            # what nothing here foresaw costs one round
            LOG.exception("a round failed")
        stop.wait(seconds)
