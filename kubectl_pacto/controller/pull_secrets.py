# SPDX-License-Identifier: MIT
"""A changed pull secret has its Pactos checked again.

Each is asked for by name, its metadata alone. A watch would tell at once, and would need the right to
read every Secret of the cluster.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from kubectl_pacto.collect.live import Table
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.controller.downloads import secret_path
from kubectl_pacto.kube.client import METADATA_ONLY, Client
from kubectl_pacto.kube.errors import ApiError, ApiNotFound
from kubectl_pacto.kube.reflector import Key

LOG: Final = logging.getLogger(__name__)
LOOK_SECONDS: Final = 30.0
# no more than twenty reads a second, however many there are
GAP_SECONDS: Final = 0.05
GONE: Final = "gone"


class PullSecrets:
    """Called by one thread; `changed` hears of each Pacto whose secret came, changed or went."""

    def __init__(self, pactos: Table[Known], changed: Callable[[Key], None]) -> None:
        self._pactos = pactos
        self._changed = changed
        self._versions: dict[str, str] = {}

    def round(self, client: Client, stop: threading.Event) -> None:
        """Look at every pull secret once."""
        users: defaultdict[str, list[Known]] = defaultdict(list)
        for known in self._pactos.contents()[0]:
            pacto = known.pacto
            if pacto.pull_secret and pacto.oci and not pacto.inline:
                users[secret_path(pacto)].append(known)
        for path in self._versions.keys() - users.keys():
            del self._versions[path]
        for path, pactos in users.items():
            if stop.wait(GAP_SECONDS):
                return
            self._look(client, path, pactos)

    def _look(self, client: Client, path: str, pactos: list[Known]) -> None:
        try:
            version = str(client.get(path, accept=METADATA_ONLY)["metadata"]["resourceVersion"])
        except ApiNotFound:
            version = GONE
        except (ApiError, KeyError) as error:
            LOG.warning("pull secret: %s", error)
            return
        before = self._versions.get(path)
        self._versions[path] = version
        for known in pactos:
            # a secret may have come between a Pacto's first check and the first look at it
            is_waiting = known.pacto.status.get("contractStatus") == "Unknown" and version != GONE
            if before != version if before is not None else is_waiting:
                self._changed((known.pacto.namespace, known.pacto.name))
