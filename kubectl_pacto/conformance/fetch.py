# SPDX-License-Identifier: MIT
"""A Pacto's contract from wherever it is: inline, else from its registry with its pull secret."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from kubectl_pacto.collect.contracts import Contracts
from kubectl_pacto.collect.credentials import Credentials, from_secret
from kubectl_pacto.collect.registry import Registry
from kubectl_pacto.collect.registry_errors import BadPullSecret, RegistryError, Unavailable
from kubectl_pacto.conformance.source import Loaded, load_failed, load_inline, loaded_bundle
from kubectl_pacto.model.ociref import OciRef, parse_oci_ref
from kubectl_pacto.model.pacto import Pacto

INSECURE_VARIABLE: Final = "PACTO_INSECURE_REGISTRIES"


def contract_loader(insecure: str = "", credentials: Credentials | None = None) -> Contracts:
    """A loader that asks real registries; `insecure` lists hosts, with commas, that speak plain HTTP.

    `credentials` are the process's own, for Pactos without a pull secret.
    """
    plain = {host.strip() for host in insecure.split(",") if host.strip()}

    def connect(ref: OciRef, own: Credentials | None) -> Registry:
        return Registry(ref, own or credentials, insecure=ref.registry in plain)

    return Contracts(connect, time.monotonic)


def load(pacto: Pacto, contracts: Contracts, secret: Mapping[str, Any] | None = None) -> Loaded:
    """The contract of a Pacto; never raises: what goes wrong makes it unavailable or invalid.

    `secret` is the pull secret that the Pacto names, as decoded JSON.
    """
    inline = load_inline(pacto)
    if inline is not None:
        return inline
    try:
        ref = parse_oci_ref(pacto.oci)
        credentials = from_secret(secret, ref.registry) if secret is not None and ref is not None else None
        bundle = contracts.load(pacto.oci, credentials)
    except (Unavailable, BadPullSecret) as error:
        return load_failed(str(error), is_unavailable=True)
    except RegistryError as error:
        return load_failed(str(error), is_unavailable=False)
    return loaded_bundle(pacto, bundle.contract, bundle.resolved_ref, bundle.files)
