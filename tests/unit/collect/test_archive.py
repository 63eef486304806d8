# SPDX-License-Identifier: MIT
"""Bundle archives, the hostile ones above all."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.collect import archive as module
from kubectl_pacto.collect.archive import ArchiveError, unpack
from tests.support.bundles import CONTRACT, archive


def entry(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_files_are_unpacked_by_their_paths() -> None:
    data = archive(
        {"./pacto.yaml": CONTRACT, "a/b.json": b"{}", "a//c..d": b""}, entry("empty", tarfile.DIRTYPE)
    )
    assert unpack(data) == {"pacto.yaml": CONTRACT, "a/b.json": b"{}", "a/c..d": b""}


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE,
    ],
)
def test_only_regular_files_are_taken(kind: bytes) -> None:
    with pytest.raises(ArchiveError):
        unpack(archive({"pacto.yaml": CONTRACT}, entry("x", kind, "/etc/passwd")))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a\\..\\x", ".."])
def test_a_path_that_leads_out_is_refused(name: str) -> None:
    with pytest.raises(ArchiveError, match="leads out"):
        unpack(archive({name: b"x"}))


def test_a_file_that_comes_twice_is_refused() -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("pacto.yaml"))
    with pytest.raises(ArchiveError, match="twice"):
        unpack(gzip.compress(raw.getvalue()))


def test_a_large_file_is_refused_before_it_is_read() -> None:
    info = tarfile.TarInfo("big")
    info.size = module.FILE_BYTES + 1
    with pytest.raises(ArchiveError, match="too large"):
        unpack(gzip.compress(info.tobuf()))


def test_many_files_that_are_large_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOTAL_BYTES", 25)
    assert unpack(archive({"a": b"x" * 12, "b": b"x" * 13}))
    with pytest.raises(ArchiveError, match="too large"):
        unpack(archive({"a": b"x" * 12, "b": b"x" * 14}))


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES", 3)
    assert unpack(archive(dict.fromkeys("abc", b"")))
    with pytest.raises(ArchiveError, match="more than 3 entries"):
        unpack(archive(dict.fromkeys("abcd", b"")))


def test_a_bomb_is_refused_without_unpacking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STREAM_BYTES", 1 << 20)
    with pytest.raises(ArchiveError, match="too much"):
        unpack(archive({"zeros": b"\0" * (4 << 20)}))


def test_a_header_that_claims_much_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STREAM_BYTES", 1 << 20)
    info = entry("x", tarfile.XHDTYPE)
    info.size = 1 << 30
    with pytest.raises(ArchiveError):
        unpack(gzip.compress(info.tobuf() + b"9" * (4 << 20)))


@pytest.mark.parametrize("data", [b"", b"hello", gzip.compress(b"hello"), archive({"a": b"x" * 9000})[:-40]])
def test_what_is_no_archive(data: bytes) -> None:
    with pytest.raises(ArchiveError):
        unpack(data)


@given(st.binary(max_size=2000), st.integers(0, 400), st.binary(min_size=1, max_size=40))
def test_damage_never_raises_anything_else(tail: bytes, at: int, patch: bytes) -> None:
    raw = bytearray(gzip.decompress(archive({"pacto.yaml": CONTRACT, "b": b"x" * 600})))
    raw[at : at + len(patch)] = patch
    for data in (gzip.compress(bytes(raw)), tail, gzip.compress(tail)):
        try:
            files = unpack(data)
        except ArchiveError:
            continue
        assert all(".." not in name.split("/") and not name.startswith("/") for name in files)
