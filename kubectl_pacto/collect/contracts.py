# SPDX-License-Identifier: MIT
"""Contracts from registries: which version a reference means, its bundle, and a cache of both."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from kubectl_pacto.collect.archive import ARCHIVE_BYTES, ArchiveError, unpack
from kubectl_pacto.collect.credentials import Credentials
from kubectl_pacto.collect.registry import MANIFEST_TYPES
from kubectl_pacto.collect.registry_errors import BadArtifact, BadReference, RegistryError
from kubectl_pacto.model.ociref import OciRef, parse_oci_ref
from kubectl_pacto.model.ranges import parse_version

CONTRACT_FILE: Final = "pacto.yaml"
RESULT_SECONDS: Final = 30.0
TAGS_SECONDS: Final = 300.0
CACHE_ENTRIES: Final = 100
# of bundles' files: the largest bundle that is taken is smaller
CACHE_BYTES: Final = 64 << 20


class Source(Protocol):
    """What of a registry is needed; `Registry` is one."""

    def tags(self) -> list[str]:
        """All tags of the repository."""

    def digest(self, reference: str, /) -> str:
        """The digest of a tag's manifest."""

    def manifest(self, reference: str, /) -> tuple[bytes, str]:
        """The manifest of a tag or digest, and its media type."""

    def blob(self, digest: str, limit: int, /) -> bytes:
        """A blob of at most `limit` bytes."""


Connect = Callable[[OciRef, Credentials | None], Source]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A contract's bundle: its files, where it was found, and its digest."""

    files: Mapping[str, bytes]
    resolved_ref: str
    digest: str

    @property
    def contract(self) -> str:
        """The text of the contract."""
        return self.files[CONTRACT_FILE].decode("utf-8", errors="replace")


def version_tags(tags: list[str]) -> list[str]:
    """The tags that are semantic versions, the highest first; releases and pre-releases alike."""
    versions = [(parsed.key, tag) for tag in set(tags) if (parsed := parse_version(tag)) is not None]
    return [tag for _, tag in sorted(versions, reverse=True)]


def highest_tag(tags: list[str]) -> str:
    """The tag of the highest semantic version; empty if there is none."""
    return next(iter(version_tags(tags)), "")


def fetch_bundle(ref: OciRef, source: Source) -> Bundle:
    """The bundle behind a reference with tag or digest. Raises RegistryError."""
    manifest, kind = source.manifest(ref.digest or ref.tag)
    digest = ref.digest or f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    _verify(ref, manifest, digest)
    layer = _only_layer(ref, manifest, kind)
    data = source.blob(layer, ARCHIVE_BYTES)
    _verify(ref, data, layer)
    try:
        files = unpack(data)
    except ArchiveError as error:
        raise BadArtifact(ref=ref, problem=str(error)) from None
    if CONTRACT_FILE not in files:
        raise BadArtifact(ref=ref, problem=f"it holds no {CONTRACT_FILE}")
    return Bundle(files, str(ref), digest)


def _verify(ref: OciRef, data: bytes, digest: str) -> None:
    algorithm, _, wanted = digest.partition(":")
    if algorithm not in ("sha256", "sha512") or hashlib.new(algorithm, data).hexdigest() != wanted:
        raise BadArtifact(ref=ref, problem=f"its content does not have the digest {digest}")


def _only_layer(ref: OciRef, manifest: bytes, kind: str) -> str:
    try:
        data: Any = json.loads(manifest)
        if (data.get("mediaType") or kind) not in MANIFEST_TYPES:
            raise BadArtifact(ref=ref, problem=f"its manifest is of type {data.get('mediaType') or kind}")
        digests = [str(layer["digest"]) for layer in data["layers"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadArtifact(ref=ref, problem="its manifest cannot be read") from None
    if len(digests) != 1:
        raise BadArtifact(ref=ref, problem=f"it has {len(digests)} layers, where a bundle has one")
    return digests[0]


class Contracts:
    """Loads bundles, remembering results and failures for a while; `clock` gives monotonic seconds.

    For several threads.

    Nothing fetched with a Pacto's own credentials is remembered: it is not for others.
    """

    def __init__(self, connect: Connect, clock: Callable[[], float]) -> None:
        self._connect, self._clock = connect, clock
        # tables are replaced, never changed: reading one needs no lock
        self._lock = threading.Lock()
        self._results: dict[str, tuple[float, Bundle | RegistryError]] = {}
        self._tags: dict[str, tuple[float, str]] = {}

    def source(self, ref: OciRef, credentials: Credentials | None) -> Source:
        """The repository of a reference, asked with these credentials."""
        return self._connect(ref, credentials)

    def load(self, text: str, credentials: Credentials | None = None, known: Bundle | None = None) -> Bundle:
        """The bundle of a reference: of its digest, its tag, or the highest version. Raises RegistryError.

        `known` is what it was before, and is returned again while the reference means the same content; no
        other caller is given it.
        """
        if credentials is not None:
            return self._fetch(text, credentials, known)
        kept = self._results.get(text)
        if kept is None or self._clock() - kept[0] >= RESULT_SECONDS:
            result: Bundle | RegistryError
            try:
                result = self._fetch(text, None, known)
            except RegistryError as error:
                result = error
            if result is known:
                return known  # of which the caller may have kept a part
            kept = (self._clock(), result)
            with self._lock:
                # a bundle may be large, and one that is too old is never looked at again
                results = self._results.items()
                fresh = {ref: item for ref, item in results if kept[0] - item[0] < RESULT_SECONDS}
                self._results = _within({**_pruned(fresh), text: kept})
        if isinstance(kept[1], RegistryError):
            raise kept[1]
        return kept[1]

    def _fetch(self, text: str, credentials: Credentials | None, known: Bundle | None) -> Bundle:
        ref = parse_oci_ref(text)
        if ref is None:
            raise BadReference(ref=text)
        source = self._connect(ref, credentials)
        if not ref.tag and not ref.digest:
            ref = OciRef(ref.registry, ref.repository, self._latest(ref, source, credentials))
        is_same_ref = known is not None and known.resolved_ref == str(ref)
        if known is not None and is_same_ref and known.digest == (ref.digest or source.digest(ref.tag)):
            return known
        return fetch_bundle(ref, source)

    def _latest(self, ref: OciRef, source: Source, credentials: Credentials | None) -> str:
        kept = self._tags.get(ref.base) if credentials is None else None
        if kept is not None and self._clock() - kept[0] < TAGS_SECONDS:
            return kept[1]
        tag = highest_tag(source.tags())
        if not tag:
            raise BadArtifact(ref=ref, problem="no tag of it is a semantic version")
        if credentials is None:
            with self._lock:
                self._tags = {**_pruned(self._tags), ref.base: (self._clock(), tag)}
        return tag


def _within(cache: dict[str, tuple[float, Bundle | RegistryError]]) -> dict[str, Any]:
    """The newest of a cache, which is in their order, as far as their bytes are not too many."""
    found, left = {}, CACHE_BYTES
    for text, (at, result) in reversed(cache.items()):
        left -= sum(map(len, result.files.values())) if isinstance(result, Bundle) else 0
        if left < 0:
            break
        found[text] = at, result
    return dict(reversed(found.items()))


V = TypeVar("V")


def _pruned(cache: dict[str, tuple[float, V]]) -> dict[str, tuple[float, V]]:
    """The newer half of a cache that has grown too large."""
    if len(cache) < CACHE_ENTRIES:
        return cache
    newest = sorted(cache.items(), key=lambda item: item[1][0])[CACHE_ENTRIES // 2 :]
    return dict(newest)
