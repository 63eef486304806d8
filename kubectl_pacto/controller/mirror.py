# SPDX-License-Identifier: MIT
"""Every version that a registry has of a Pacto's contract as a PactoRevision, looked up every five minutes.

Runs in a thread and with a client of its own: a registry that is slow or gone holds up nothing but this.
Tags are compared by their digests, which costs a registry little; content is fetched when it is new.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kubectl_pacto.collect.contracts import CONTRACT_FILE, Contracts, Source, fetch_bundle, version_tags
from kubectl_pacto.collect.credentials import Credentials
from kubectl_pacto.collect.live import Table
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.collect.registry_errors import (
    ArtifactNotFound,
    BadArtifact,
    BadPullSecret,
    RegistryError,
    RegistryUnreachable,
    Unavailable,
)
from kubectl_pacto.controller.downloads import own_credentials
from kubectl_pacto.controller.events import News, post
from kubectl_pacto.controller.revision_table import Revision
from kubectl_pacto.controller.revisions import Had, Revisions
from kubectl_pacto.engine.layers import validate
from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.model.ociref import OciRef, parse_oci_ref

LOG: Final = logging.getLogger(__name__)
MIRROR_SECONDS: Final = 300.0
# of one Pacto: the highest versions; fewer where there are so many Pactos that all would be too many
MIRRORED_TAGS: Final = 100
FEWEST_TAGS: Final = 5
ALL_TAGS: Final = 200_000
# one registry may take this much of a round; the rest of its tags is looked at in the next
HOST_SECONDS: Final = 60.0
SHOWN: Final = 12


@dataclass(slots=True)
class _Seen:
    """What a repository was seen to hold: tag -> digest and when it was compared, monotonic.

    A tag without content has an empty digest. `bad` are the tags whose content is no contract's.
    """

    base: str
    tags: dict[str, tuple[str, float]] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)
    at: float = float("-inf")
    trouble: str = ""


@dataclass(slots=True)
class _Round:
    """One round: what was asked without credentials is asked once for all Pactos.

    `limit` is how many tags of one Pacto are mirrored.
    """

    limit: int = MIRRORED_TAGS
    listed: dict[str, list[str]] = field(default_factory=dict)
    digests: dict[tuple[str, str], str] = field(default_factory=dict)
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    down: dict[str, PactoError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Task:
    """One Pacto's repository in one round."""

    client: Client
    known: Known
    ref: OciRef
    seen: _Seen
    owned: list[Revision]
    source: Source
    own: Credentials | None


class Mirror:
    """Called by one thread; `moved` hears of a Pacto one of whose tags means something else now."""

    def __init__(
        self,
        pactos: Table[Known],
        revisions: Revisions,
        contracts: Contracts,
        *,
        moved: Callable[[Key], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._pactos, self._revisions, self._contracts = pactos, revisions, contracts
        self._moved, self._clock, self._wall = moved, clock, wall
        self._seen: dict[Key, _Seen] = {}
        self._lost: set[Key] = set()

    def revision_lost(self, key: Key) -> None:
        """A revision of this Pacto was deleted: what its tags hold is looked at again. Any thread."""
        self._lost.add(key)

    def round(self, client: Client, stop: threading.Event) -> None:
        """Look at every Pacto's repository once, those not looked at for the longest first."""
        known = {(one.pacto.namespace, one.pacto.name): one for one in self._pactos.contents()[0]}
        while self._lost:
            self._seen.pop(self._lost.pop(), None)
        for key in self._seen.keys() - known.keys():
            del self._seen[key]
        table, names = self._revisions.table, self._revisions.table.owned()
        now, never = _Round(_limit(len(known))), _Seen("")
        for key in sorted(known, key=lambda key: (self._seen.get(key, never).at, key)):
            if stop.is_set():
                return
            one = known[key]
            owned = [item for name in names.get((key[0], one.uid), ()) if (item := table.get((key[0], name)))]
            try:
                meant = self._look(client, key, one, now, owned)
                if meant is not None:
                    self._revisions.prune(client, one, owned, meant)
            except PactoError as error:
                self._failed(client, key, one, error)

    def _look(
        self, client: Client, key: Key, known: Known, now: _Round, owned: list[Revision]
    ) -> set[str] | None:
        """The names of the revisions that a tag means; None while not all are known. Raises PactoError."""
        ref = parse_oci_ref(known.pacto.oci)
        if ref is None or ref.digest or known.pacto.inline:
            self._seen.pop(key, None)
            return set()
        seen = self._seen.get(key)
        if seen is None or seen.base != ref.base:
            seen = self._seen[key] = _Seen(ref.base)
        # who is not asked now keeps its place, and comes before those that are
        if ref.registry in now.down:
            raise now.down[ref.registry]
        if now.spent[ref.registry] > HOST_SECONDS:
            return None
        seen.at = self._clock()
        try:
            own = own_credentials(client, known.pacto, ref)
            source = self._contracts.source(ref, own)
            is_whole = self._mirror(_Task(client, known, ref, seen, owned, source, own), now)
        except RegistryUnreachable as error:
            now.down[ref.registry] = error
            raise
        finally:
            now.spent[ref.registry] += self._clock() - seen.at
        seen.trouble = ""
        return {item.name for item in owned if _is_meant(item, seen)} if is_whole else None

    def _mirror(self, task: _Task, now: _Round) -> bool:
        """Bring one Pacto's revisions up to date; whether its time was enough. Raises PactoError."""
        seen, host = task.seen, task.ref.registry
        tags = _tags(task, now)
        for gone in seen.tags.keys() - set(tags):
            del seen.tags[gone]
        seen.bad &= set(tags)
        order = sorted(tags, key=lambda tag: seen.tags.get(tag, ("", float("-inf")))[1])
        for number, tag in enumerate(order):
            # one at least, so that whoever comes last in a round gets on, too
            if number and now.spent[host] + self._clock() - seen.at > HOST_SECONDS:
                return False
            try:
                self._compare(task, tag, _digest(task, tag, now))
            except ArtifactNotFound:
                # some registries list what they no longer have
                seen.tags[tag] = seen.tags.get(tag, ("", 0.0))[0], self._clock()
        return True

    def _compare(self, task: _Task, tag: str, digest: str) -> None:
        seen, ref = task.seen, OciRef(task.ref.registry, task.ref.repository, tag)
        before = seen.tags.get(tag, ("", 0.0))[0] or _recorded(task.owned, str(ref))
        if digest != before:
            try:
                digest = self._fetch(task, ref)
                seen.bad.discard(tag)
            except BadArtifact as error:
                # the repository's other tags are none the worse
                self._is_bad(task, tag, error)
            if before and digest != before:
                self._overwritten(task, ref, before, digest)
        seen.tags[tag] = digest, self._clock()

    def _fetch(self, task: _Task, ref: OciRef) -> str:
        """Record what a tag holds; the digest of that."""
        bundle = fetch_bundle(ref, task.source)
        contract = validate(bundle.contract, files=bundle.files).contract
        if contract is None:
            LOG.info("%s is no valid contract: no revision", ref)
        else:
            had = Had(contract, bundle.files[CONTRACT_FILE], str(ref), bundle.digest)
            self._revisions.record(task.client, task.known, had)
        return bundle.digest

    def _is_bad(self, task: _Task, tag: str, error: BadArtifact) -> None:
        seen, known = task.seen, task.known
        if not seen.bad:
            self._tell(task.client, known, "ContractInvalid", error)
        LOG.warning("mirror of %s/%s: %s", known.pacto.namespace, known.pacto.name, error)
        seen.bad.add(tag)

    def _overwritten(self, task: _Task, ref: OciRef, before: str, after: str) -> None:
        old, new = (digest.partition(":")[2][:SHOWN] for digest in (before, after))
        news = News("TagOverwritten", f"{ref}: its digest was {old}, and is {new}")
        post(task.client, task.known, news, self._wall())
        self._moved((task.known.pacto.namespace, task.known.pacto.name))

    def _failed(self, client: Client, key: Key, known: Known, error: PactoError) -> None:
        """Tell of a registry's failure once, unless the Pacto's own status says so."""
        LOG.warning("mirror of %s/%s: %s", *key, error)
        is_passing = isinstance(error, Unavailable | BadPullSecret)
        reason = "ContractUnavailable" if is_passing else "ContractInvalid"
        seen = self._seen.get(key)
        if not isinstance(error, RegistryError) or seen is None or seen.trouble == reason:
            return
        seen.trouble = reason
        self._tell(client, known, reason, error)

    def _tell(self, client: Client, known: Known, reason: str, error: PactoError) -> None:
        if known.pacto.status.get("contractStatus") not in ("Unknown", "Invalid"):
            post(client, known, News(reason, f"its versions cannot be mirrored: {error}"), self._wall())


def _limit(pactos: int) -> int:
    return max(FEWEST_TAGS, min(MIRRORED_TAGS, ALL_TAGS // max(1, pactos)))


def _tags(task: _Task, now: _Round) -> list[str]:
    if task.own is not None:
        return version_tags(task.source.tags())[: now.limit]
    base = task.ref.base
    if base not in now.listed:
        now.listed[base] = version_tags(task.source.tags())[: now.limit]
    return now.listed[base]


def _digest(task: _Task, tag: str, now: _Round) -> str:
    if task.own is not None:
        return task.source.digest(tag)
    key = task.ref.base, tag
    if key not in now.digests:
        now.digests[key] = task.source.digest(tag)
    return now.digests[key]


def _recorded(owned: list[Revision], oci: str) -> str:
    """The digest that a tag had when its newest revision was made; empty if it has none."""
    found = [(item.created, item.digest) for item in owned if item.oci == oci]
    return max(found, default=("", ""))[1]


def _is_meant(item: Revision, seen: _Seen) -> bool:
    """Whether a revision is what a tag means now."""
    base, _, tag = item.oci.rpartition(":")
    return base == seen.base and tag in seen.tags and seen.tags[tag][0] == item.digest
