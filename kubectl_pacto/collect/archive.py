# SPDX-License-Identifier: MIT
"""A bundle's archive to its files, in memory: nothing is ever written, linked or followed.

Regular files and directories only; every size is bounded before it is read.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from typing import Final

FILE_BYTES: Final = 10 << 20
TOTAL_BYTES: Final = 50 << 20
ENTRIES: Final = 10_000
ARCHIVE_BYTES: Final = 16 << 20
# headers and padding beside the files themselves
_STREAM_BYTES: Final = TOTAL_BYTES + ENTRIES * 2048


class ArchiveError(ValueError):
    """An archive that is none, or one that we do not take."""


class _Bounded(io.RawIOBase):
    """The decompressed stream, which ends with an error beyond its bound."""

    def __init__(self, data: bytes) -> None:
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._data, self._left, self._size = data, b"", 0

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; raises ArchiveError beyond the bound."""
        want = 64 << 10 if size < 0 else size
        while not self._left and not self._inflate.eof:
            if not self._data:
                raise ArchiveError("it is cut off")
            self._left = self._inflate.decompress(self._data, 64 << 10)
            self._data = self._inflate.unconsumed_tail
        part, self._left = self._left[:want], self._left[want:]
        self._size += len(part)
        if self._size > _STREAM_BYTES:
            raise ArchiveError("it unpacks to too much")
        return part


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of a gzip-compressed tar archive by their paths. Raises ArchiveError."""
    files: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=_Bounded(data), mode="r|") as archive:
            for number, entry in enumerate(archive, start=1):
                if number > ENTRIES:
                    raise ArchiveError(f"it has more than {ENTRIES} entries")
                name = _plain_name(entry)
                if entry.isdir() or not name:
                    continue
                if not entry.isreg() or entry.issparse():
                    raise ArchiveError(f"{name} is not a regular file")
                total += entry.size
                if entry.size > FILE_BYTES or total > TOTAL_BYTES:
                    raise ArchiveError(f"{name} makes it too large")
                source = archive.extractfile(entry)
                content = source.read() if source else b""
                if len(content) != entry.size:
                    raise ArchiveError(f"{name} is cut off")
                if name in files:
                    raise ArchiveError(f"{name} is in it twice")
                files[name] = content
    except (tarfile.TarError, zlib.error, EOFError, UnicodeError, OverflowError) as error:
        raise ArchiveError(f"it is not a gzip-compressed tar archive: {error}") from None
    return files


def _plain_name(entry: tarfile.TarInfo) -> str:
    """The path of an entry inside the bundle. Raises ArchiveError for one that leads out of it."""
    parts = [part for part in entry.name.split("/") if part not in ("", ".")]
    if entry.name.startswith("/") or ".." in parts or "\\" in entry.name or "\0" in entry.name:
        raise ArchiveError(f"{entry.name!r} leads out of it")
    return "/".join(parts)
