# SPDX-License-Identifier: MIT
"""References to artifacts in a registry: registry/repository, with tag, digest, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

SCHEME: Final = "oci://"
_HOST: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?|\[[0-9a-fA-F:]+\](?::\d{1,5})?"
)
_PART: Final = re.compile(r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


@dataclass(frozen=True, slots=True)
class OciRef:
    """A parsed reference; `tag` and `digest` are empty where none is given."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def base(self) -> str:
        """Registry and repository alone."""
        return f"{self.registry}/{self.repository}"

    def __str__(self) -> str:
        return self.base + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def parse_oci_ref(text: str) -> OciRef | None:
    """The reference in a text, with or without `oci://` (percent escapes are decoded); None if none."""
    bare = unquote(text.strip().removeprefix(SCHEME))
    bare, at, digest = bare.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return None
    registry, slash, path = bare.partition("/")
    head, last_slash, last = path.rpartition("/")
    last, colon, tag = last.partition(":")  # a colon is a tag's only after the last slash
    if colon and not _TAG.fullmatch(tag):
        return None
    repository = head + last_slash + last
    if not slash or not _HOST.fullmatch(registry):
        return None
    if not all(_PART.fullmatch(part) for part in repository.split("/")):
        return None
    return OciRef(registry, repository, tag, digest)
