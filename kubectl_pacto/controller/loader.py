# SPDX-License-Identifier: MIT
"""A Pacto's contract: inline, or what was downloaded last from its registry."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kubectl_pacto.collect.contracts import Contracts
from kubectl_pacto.conformance.fetch import contract_loader
from kubectl_pacto.conformance.source import Loaded, load_inline
from kubectl_pacto.controller.downloads import Downloads
from kubectl_pacto.model.pacto import Pacto

KEPT: Final = 20_000
UNUSED_SECONDS: Final = 3600.0


def contracts(insecure: tuple[str, ...] = ()) -> Contracts:
    """What asks registries; those named in `insecure` over plain HTTP."""
    return contract_loader(",".join(insecure))


class ContractLoader:
    """Loads contracts for all workers; validating an inline contract again costs more than a check.

    A contract is validated once, however many Pactos have it, and kept until nobody has asked for an hour.
    """

    def __init__(self, downloads: Downloads, clock: Callable[[], float] = time.monotonic) -> None:
        self._downloads = downloads
        self._clock = clock
        self._lock = threading.Lock()
        self._inline: OrderedDict[tuple[object, ...], tuple[Loaded, float]] = OrderedDict()

    def load(self, pacto: Pacto) -> Loaded | None:
        """The contract of a Pacto, or why it cannot be had; None: it is on its way, and will be told."""
        if not pacto.inline and pacto.oci:
            return self._downloads.get(pacto)
        self.forget((pacto.namespace, pacto.name))
        overrides = tuple((name, tuple(values.items())) for name, values in pacto.overrides)
        key = (pacto.inline, overrides)
        with self._lock:
            known = self._inline.get(key)
        # beside the lock: it takes milliseconds
        found = load_inline(pacto) if known is None else known[0]
        assert found is not None
        now = self._clock()
        with self._lock:
            self._inline[key] = found, now
            self._inline.move_to_end(key)
            while len(self._inline) > KEPT or next(iter(self._inline.values()))[1] < now - UNUSED_SECONDS:
                self._inline.popitem(last=False)
        return found

    def __len__(self) -> int:
        return len(self._inline)

    def forget(self, key: tuple[str, str]) -> None:
        """A Pacto that is gone."""
        self._downloads.forget(key)
