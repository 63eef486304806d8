# SPDX-License-Identifier: MIT
"""A Pacto's contract: inline, or from a registry, with its own pull secret where it names one.

That Secret is the only one whose data is ever read, and it is read for each load, never kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

from kubectl_pacto.collect.contracts import Contracts
from kubectl_pacto.collect.credentials import Credentials, from_secret
from kubectl_pacto.collect.registry import Registry
from kubectl_pacto.collect.registry_errors import BadReference, RegistryError, Unavailable
from kubectl_pacto.conformance.source import Loaded, load_failed, load_inline, loaded_bundle
from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.paths import namespaced
from kubectl_pacto.model.ociref import parse_oci_ref
from kubectl_pacto.model.pacto import Pacto

KEPT: Final = 20_000


class ContractLoader:
    """Loads contracts for all workers; validating an inline contract again costs more than a check."""

    def __init__(self, insecure: tuple[str, ...] = ()) -> None:
        self._contracts = Contracts(
            lambda ref, credentials: Registry(ref, credentials, insecure=ref.registry in insecure),
            time.monotonic,
        )
        self._inline: OrderedDict[tuple[object, ...], Loaded] = OrderedDict()

    def load(self, client: Client, pacto: Pacto) -> Loaded:
        """The contract of a Pacto, or why it cannot be had."""
        if pacto.inline or not pacto.oci:
            return self._load_inline(pacto)
        try:
            credentials = self._credentials(client, pacto) if pacto.pull_secret else None
            bundle = self._contracts.load(pacto.oci, credentials)
        except Unavailable as error:
            return load_failed(str(error), is_unavailable=True)
        except RegistryError as error:
            return load_failed(str(error), is_unavailable=bool(pacto.pull_secret) and not _is_ref(pacto))
        except PactoError as error:
            return load_failed(f"pull secret {pacto.pull_secret}: {error}", is_unavailable=True)
        return loaded_bundle(pacto, bundle.contract, bundle.resolved_ref, bundle.files)

    def _load_inline(self, pacto: Pacto) -> Loaded:
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

    def _credentials(self, client: Client, pacto: Pacto) -> Credentials | None:
        ref = parse_oci_ref(pacto.oci)
        if ref is None:
            raise BadReference(ref=pacto.oci)
        secret = client.get(namespaced("/api/v1", pacto.namespace, "secrets", pacto.pull_secret))
        return from_secret(secret, ref.registry)


def _is_ref(pacto: Pacto) -> bool:
    return parse_oci_ref(pacto.oci) is not None
