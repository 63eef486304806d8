# SPDX-License-Identifier: MIT
"""A Pacto's contract: inline, or what was downloaded last from its registry."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from kubectl_pacto.collect.contracts import Contracts
from kubectl_pacto.conformance.fetch import contract_loader
from kubectl_pacto.conformance.source import Loaded, load_inline
from kubectl_pacto.controller.downloads import Downloads
from kubectl_pacto.model.pacto import Pacto

KEPT: Final = 20_000


def contracts(insecure: tuple[str, ...] = ()) -> Contracts:
    """What asks registries; those named in `insecure` over plain HTTP."""
    return contract_loader(",".join(insecure))


class ContractLoader:
    """Loads contracts for all workers; validating an inline contract again costs more than a check."""

    def __init__(self, downloads: Downloads) -> None:
        self._downloads = downloads
        self._inline: OrderedDict[tuple[object, ...], Loaded] = OrderedDict()

    def load(self, pacto: Pacto) -> Loaded | None:
        """The contract of a Pacto, or why it cannot be had; None: it is on its way, and will be told."""
        if not pacto.inline and pacto.oci:
            return self._downloads.get(pacto)
        self.forget((pacto.namespace, pacto.name))
        overrides = tuple((name, tuple(values.items())) for name, values in pacto.overrides)
        key = (pacto.inline, overrides)
        found = self._inline.get(key)
        if found is None:
            loaded = load_inline(pacto)
            assert loaded is not None
            found = self._inline[key] = loaded
            while len(self._inline) > KEPT:
                self._inline.popitem(last=False)
        return found

    def forget(self, key: tuple[str, str]) -> None:
        """A Pacto that is gone."""
        self._downloads.forget(key)
