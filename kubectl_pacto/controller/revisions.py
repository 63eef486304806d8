# SPDX-License-Identifier: MIT
"""A PactoRevision for each contract that a Pacto has had: what it was, and when it was first seen.

One that somebody deleted is made again. A failure is logged and changes no verdict; the next pass tries
again. A Pacto's revisions go with it; of those that nothing means any more the newest stay.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.collect.contracts import CONTRACT_FILE
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.conformance.source import Loaded
from kubectl_pacto.controller.events import News, post
from kubectl_pacto.controller.revision_table import Revision, RevisionTable
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiConflict, ApiError, ApiNotFound
from kubectl_pacto.kube.paths import PACTO_API, namespaced
from kubectl_pacto.model.contract import Contract
from kubectl_pacto.model.group import API_VERSION, GROUP
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.pacto import Pacto

LOG: Final = logging.getLogger(__name__)
NAME_LENGTH: Final = 253
# of revisions that are neither current nor a tag's
SUPERSEDED: Final = 100
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Had:
    """A contract that a Pacto has or had: its text before any override, and where it came from."""

    contract: Contract
    text: bytes
    oci: str = ""
    digest: str = ""


class Revisions:
    """Makes revisions; `table` holds all there are, `clock` is the wall clock."""

    def __init__(self, table: RevisionTable | None = None, clock: Callable[[], float] = time.time) -> None:
        self.table = RevisionTable() if table is None else table
        self._clock = clock

    def ensure(self, client: Client, known: Known, loaded: Loaded) -> str:
        """The name of a contract's revision, made if need be; without a contract the last one's."""
        contract = loaded.validated.contract
        text = _text(known.pacto, loaded)
        if contract is None or loaded.validated.errors or text is None:
            return known.revision
        try:
            return self.record(client, known, Had(contract, text, loaded.resolved_ref, loaded.digest))
        except ApiError as error:
            LOG.warning("revision of %s/%s: %s", known.pacto.namespace, known.pacto.name, error)
            return known.revision

    def record(self, client: Client, known: Known, had: Had) -> str:
        """The name of the revision of a contract, made if there is none. Raises ApiError."""
        namespace, digest = known.pacto.namespace, hashlib.sha256(had.text).hexdigest()
        name = revision_name(known.pacto.name, had.contract.version, digest)
        found = self.table.get((namespace, name))
        if found is not None and had.digest and found.digest not in ("", had.digest):
            # the same contract in another artifact: its other files differ
            name = revision_name(known.pacto.name, had.contract.version, digest, had.digest)
            found = self.table.get((namespace, name))
        if found is not None and found.is_resolved:
            return name
        path, now = namespaced(PACTO_API, namespace, "pactorevisions"), self._clock()
        if found is None:
            try:
                client.post(path, revision(known, had, name))
            except ApiConflict:
                return name  # the watch is about to tell of it
        status = {"resolved": True, "contractHash": digest, "createdAt": format_instant(now)}
        client.patch(f"{path}/{name}/status", {"status": status})
        text = f"contract {had.contract.service} {had.contract.version}: revision {name}"
        post(client, known, News("RevisionCreated", text, is_warning=False), now)
        return name

    def prune(self, client: Client, known: Known, owned: Collection[Revision], meant: Collection[str]) -> int:
        """Delete the oldest of a Pacto's revisions that nothing means; how many. Raises ApiError.

        `meant` are the names of those that a tag means now.
        """
        spare = [item for item in owned if item.name != known.revision and item.name not in meant]
        oldest = sorted(spare, key=lambda item: (item.created, item.name))
        oldest = oldest[: max(0, len(oldest) - SUPERSEDED)]
        for item in oldest:
            path = namespaced(PACTO_API, item.namespace, "pactorevisions", item.name)
            try:
                client.delete(path, {"preconditions": {"uid": item.uid}})
            except (ApiNotFound, ApiConflict):
                continue
        return len(oldest)


def _text(pacto: Pacto, loaded: Loaded) -> bytes | None:
    """The contract as it was written, before any override."""
    return pacto.inline.encode() if pacto.inline else (loaded.files or {}).get(CONTRACT_FILE)


def revision_name(pacto: str, version: str, digest: str, artifact: str = "") -> str:
    """`<pacto>-<version>-<hash>`, as a name may be; with the digest of an artifact as its end."""
    plain = _NOT_IN_NAMES.sub("-", (version or "unknown").lower()).strip("-") or "unknown"
    end = f"-{digest[:7]}" + (f"-{artifact.partition(':')[2][:7]}" if artifact else "")
    return f"{pacto}-{plain}"[: NAME_LENGTH - len(end)].rstrip("-.") + end


def revision(known: Known, had: Had, name: str) -> dict[str, Any]:
    """The object, owned by its Pacto."""
    pacto = known.pacto
    version = _NOT_IN_LABELS.sub("-", had.contract.version)[:63].strip("-._")
    source: dict[str, Any] = {"oci": had.oci, "digest": had.digest} if had.oci else {"inline": True}
    return {
        "apiVersion": API_VERSION,
        "kind": "PactoRevision",
        "metadata": {
            "name": name,
            "namespace": pacto.namespace,
            "labels": {f"{GROUP}/pacto": pacto.name[:63], f"{GROUP}/version": version},
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
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
            "version": had.contract.version or "unknown",
            "serviceName": had.contract.service,
            "source": {key: value for key, value in source.items() if value},
        },
    }
