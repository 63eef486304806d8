# SPDX-License-Identifier: MIT
"""The PactoRevisions that there are, as far as they matter here, packed: there may be hundreds of thousands.

A name and 190 bytes or so for each, from the moment that it is decoded; one is unpacked when it is asked for.
"""

from __future__ import annotations

import marshal
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_pacto.kube.reflector import Broken, Key
from kubectl_pacto.model.fields import Fields
from kubectl_pacto.model.instant import parse_instant

SHA256: Final = "sha256:"
UID_LENGTH: Final = 36
Packed = bytes


@dataclass(frozen=True, slots=True)
class Revision:
    """A PactoRevision as far as it matters here; `owner` is the uid of its Pacto, `created` POSIX seconds."""

    namespace: str
    name: str
    uid: str
    pacto: str
    owner: str
    oci: str
    digest: str
    created: float
    is_resolved: bool


def decode_revision(raw: dict[str, Any]) -> Revision:
    """A PactoRevision. Raises MalformedObject."""
    top = Fields(raw)
    metadata, spec = top.child("metadata"), top.child("spec")
    source = spec.child("source")
    owners = [item.text("uid") for item in metadata.children("ownerReferences") if item.flag("controller")]
    return Revision(
        metadata.text("namespace"),
        metadata.text("name"),
        metadata.text("uid"),
        spec.text("pactoRef"),
        owners[0] if owners else "",
        source.text("oci"),
        source.text("digest"),
        _seconds(metadata.text("creationTimestamp")),
        top.child("status").flag("resolved"),
    )


def pack(one: Revision) -> Packed:
    """A revision without its namespace and name, which a table knows it by."""
    return marshal.dumps(
        (
            _short_uid(one.owner),
            _short_uid(one.uid),
            _short_digest(one.digest),
            one.created,
            one.pacto,
            one.oci,
            one.is_resolved,
        )
    )


def unpack(namespace: str, name: str, packed: Packed) -> Revision:
    """The revision that was packed."""
    owner, uid, digest, created, pacto, oci, is_resolved = marshal.loads(packed)  # noqa: S302 -- packed above
    return Revision(
        namespace,
        name,
        _long_uid(uid),
        pacto,
        _long_uid(owner),
        oci,
        f"{SHA256}{digest.hex()}" if isinstance(digest, bytes) else digest,
        created,
        is_resolved,
    )


def _seconds(text: str) -> float:
    """A time; that of an object without any is before all others."""
    try:
        return parse_instant(text)
    except ValueError:
        return 0.0


def _short_uid(text: str) -> bytes | str:
    # not by way of UUID objects, which take longer than all the rest
    if len(text) != UID_LENGTH:
        return text
    try:
        found = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return text
    return found if _long_uid(found) == text else text


def _long_uid(short: bytes | str) -> str:
    if isinstance(short, str):
        return short
    text = short.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _short_digest(text: str) -> bytes | str:
    try:
        found = bytes.fromhex(text.removeprefix(SHA256))
    except ValueError:
        return text
    return found if f"{SHA256}{found.hex()}" == text else text


class RevisionTable:
    """A sink of the revisions' reflector, for several threads; `lost` hears of each that is deleted."""

    def __init__(self, lost: Callable[[Revision], None] = lambda _: None) -> None:
        self._lost = lost
        self._lock = threading.Lock()
        # namespace -> name -> the rest
        self._spaces: dict[str, dict[str, Packed]] = {}

    def decode(self, raw: dict[str, Any]) -> Packed:
        """A PactoRevision as it is kept: what is here already is not made twice. Raises MalformedObject."""
        one = decode_revision(raw)
        packed = pack(one)
        before = self._spaces.get(one.namespace, {}).get(one.name)
        return before if before == packed else packed

    def replace(self, items: Mapping[Key, Packed | Broken]) -> None:
        """After a list. What stays keeps its place: all of it twice would be most of a process's memory."""
        for key in [
            (namespace, name)
            for namespace, names in self._spaces.items()
            for name in names
            if not isinstance(items.get((namespace, name)), bytes)
        ]:
            self.drop(key)
        for key, item in items.items():
            self.put(key, item)

    def put(self, key: Key, item: Packed | Broken) -> None:
        """A revision that is new or has changed."""
        if isinstance(item, bytes):
            with self._lock:
                self._spaces.setdefault(key[0], {})[key[1]] = item
        else:
            self.drop(key)

    def drop(self, key: Key) -> None:
        """A revision that is gone."""
        namespace, name = key
        with self._lock:
            names = self._spaces.get(namespace, {})
            packed = names.pop(name, None)
            if not names:
                self._spaces.pop(namespace, None)
        if packed is not None:
            self._lost(unpack(namespace, name, packed))

    def get(self, key: Key) -> Revision | None:
        """One revision."""
        packed = self._spaces.get(key[0], {}).get(key[1])
        return None if packed is None else unpack(*key, packed)

    def owned(self) -> dict[tuple[str, str], list[str]]:
        """The names of all revisions by their namespace and the uid of the Pacto that owns them."""
        found: defaultdict[tuple[str, bytes | str], list[str]] = defaultdict(list)
        with self._lock:
            for namespace, names in self._spaces.items():
                for name, packed in names.items():
                    found[namespace, _owner(packed)].append(name)
        return {(namespace, _long_uid(owner)): names for (namespace, owner), names in found.items()}

    def __len__(self) -> int:
        return sum(map(len, list(self._spaces.values())))


def _owner(packed: Packed) -> bytes | str:
    owner: bytes | str = marshal.loads(packed)[0]  # noqa: S302 -- packed above
    return owner
