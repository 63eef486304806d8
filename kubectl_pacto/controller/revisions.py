# SPDX-License-Identifier: MIT
"""A PactoRevision for each contract that a Pacto has had: what it was, and when it was first seen.

A failure is logged and changes no verdict; the next pass tries again.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final

from kubectl_pacto.collect.contracts import CONTRACT_FILE
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.conformance.source import Loaded
from kubectl_pacto.controller.events import News, post
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiConflict, ApiError
from kubectl_pacto.kube.paths import PACTO_API, namespaced
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.pacto import Pacto

LOG: Final = logging.getLogger(__name__)
API: Final = "pacto.trianalab.io/v1alpha1"
LABEL_PREFIX: Final = "pacto.trianalab.io"
NAME_LENGTH: Final = 253
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]+")


class Revisions:
    """Makes revisions; `clock` is the wall clock."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def ensure(self, client: Client, known: Known, loaded: Loaded) -> str:
        """The name of a contract's revision, made if need be; without a contract the last one's."""
        contract = loaded.validated.contract
        text = _text(known.pacto, loaded)
        if contract is None or loaded.validated.errors or text is None:
            return known.revision
        digest = hashlib.sha256(text).hexdigest()
        name = revision_name(known.pacto.name, contract.version, digest)
        if name == known.revision:
            return name
        try:
            self._make(client, known, contract, name, digest)
        except ApiError as error:
            LOG.warning("revision %s/%s: %s", known.pacto.namespace, name, error)
            return known.revision
        return name

    def _make(self, client: Client, known: Known, contract: Contract, name: str, digest: str) -> None:
        path, now = namespaced(PACTO_API, known.pacto.namespace, "pactorevisions"), self._clock()
        try:
            client.post(path, revision(known, contract, name))
        except ApiConflict:
            return  # a contract that the Pacto went back to
        status = {"resolved": True, "contractHash": digest, "createdAt": format_instant(now)}
        client.patch(f"{path}/{name}/status", {"status": status})
        text = f"contract {contract.service} {contract.version}: revision {name}"
        post(client, known, News("RevisionCreated", text, is_warning=False), now)


def _text(pacto: Pacto, loaded: Loaded) -> bytes | None:
    """The contract as it was written, before any override."""
    return pacto.inline.encode() if pacto.inline else (loaded.files or {}).get(CONTRACT_FILE)


def revision_name(pacto: str, version: str, digest: str) -> str:
    """`<pacto>-<version>-<hash>`, as a name may be."""
    plain = _NOT_IN_NAMES.sub("-", (version or "unknown").lower()).strip("-") or "unknown"
    end = f"-{digest[:7]}"
    return f"{pacto}-{plain}"[: NAME_LENGTH - len(end)].rstrip("-.") + end


def revision(known: Known, contract: Contract, name: str) -> dict[str, Any]:
    """The object, owned by its Pacto."""
    pacto = known.pacto
    version = _NOT_IN_LABELS.sub("-", contract.version)[:63].strip("-._")
    source: dict[str, Any] = {"inline": True} if pacto.inline else {"oci": pacto.oci}
    return {
        "apiVersion": API,
        "kind": "PactoRevision",
        "metadata": {
            "name": name,
            "namespace": pacto.namespace,
            "labels": {f"{LABEL_PREFIX}/pacto": pacto.name[:63], f"{LABEL_PREFIX}/version": version},
            "ownerReferences": [
                {
                    "apiVersion": API,
                    "kind": "Pacto",
                    "name": pacto.name,
                    "uid": known.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "pactoRef": pacto.name,
            "version": contract.version or "unknown",
            "serviceName": contract.service,
            "source": source,
        },
    }
