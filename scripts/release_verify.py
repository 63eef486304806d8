# SPDX-License-Identifier: MIT
"""Hashes a release again, whole and in its parts: `python scripts/release_verify.py FOLDER`.

Every file against SHA256SUMS, every file of a wheel against its RECORD, every blob of an image against the
digest that names it, the krew manifest against its archives, the bill of materials against the wheels,
every program and library in wheels and images against the architecture that their names say, and every
version against one. Nothing is believed that the same folder does not show twice.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import csv
import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

SUMS: Final = "SHA256SUMS"
LINE: Final = re.compile(r"^([0-9a-f]{64})  (\S.*)$")
INDEX_TYPES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
# an ELF file's machine, by the words for it that names of files have; a BPF program runs on all of them
MACHINES: Final = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}
BPF: Final = 247
# what reading a damaged archive, or text that is none, raises
UNREADABLE: Final = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, EOFError),
    *(yaml.YAMLError, tarfile.TarError, zipfile.BadZipFile, zlib.error),
)


def sha256(path: Path) -> str:
    """The digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path) -> Path:
    """List every file with its digest, as sha256sum does."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = [f"{sha256(folder / name)}  {name}\n" for name in names if name != SUMS]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")
    return folder / SUMS


def problems(folder: Path) -> list[str]:
    """`FILE: what is wrong`, of everything; none for a release that holds together."""
    found = list(_sums(folder))
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        try:
            found += [f"{name}: {problem}" for problem in _inside(path)]
        except UNREADABLE as error:
            found.append(_unreadable(name, error))
    return found + list(_together(folder))


def _unreadable(name: str, error: Exception) -> str:
    return f"{name}: cannot be read: {' '.join(str(error).split())}"


def _sums(folder: Path) -> Iterator[str]:
    listed: dict[str, str] = {}
    if not (folder / SUMS).is_file():
        yield f"{SUMS}: is missing"
        return
    for line in (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines():
        if match := LINE.match(line):
            listed[match[2]] = match[1]
        else:
            yield f"{SUMS}: {line!r} is no line of it"
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {SUMS}
    for name in sorted(there | listed.keys()):
        if name not in there:
            yield f"{name}: is missing"
        elif name not in listed:
            yield f"{name}: is not listed in {SUMS}"
        elif sha256(folder / name) != listed[name]:
            yield f"{name}: is not what {SUMS} says"


def _inside(path: Path) -> Iterator[str]:
    if path.suffix == ".whl":
        yield from _wheel(path)
    elif path.name.endswith(".oci.tar"):
        yield from _image(path)
    elif path.name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(path, "r:gz") as tar:
            for member in tar:
                if member.name.startswith("/") or ".." in Path(member.name).parts:
                    yield f"{member.name} leads out of it"


def _elf_machine(data: bytes) -> int | None:
    """The machine that an ELF file is for; nothing for another file."""
    return int.from_bytes(data[18:20], "little") if data[:4] == b"\x7fELF" else None


def _wheel(path: Path) -> Iterator[str]:
    tag = path.stem.rpartition("-")[2]
    wanted = next((number for word, number in MACHINES.items() if tag.endswith(f"_{word}")), None)
    native = 0
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
        for name in sorted((names | rows.keys()) - {record}):
            if name not in names or name not in rows:
                yield f"{name} is {'not there' if name in rows else 'not in RECORD'}"
                continue
            digest, size = rows[name]
            data = archive.read(name)
            told = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            if (told, str(len(data))) != (digest, size):
                yield f"{name} is not what RECORD says"
            machine = _elf_machine(data)
            native += machine == wanted
            if machine not in (None, BPF, wanted):
                yield f"{name} is for machine {machine}, and the name of the wheel says {tag}"
    if wanted and not native:
        yield f"nothing in it is for {tag}"


class _Layout:
    """The blobs of an OCI archive by digest, and which of them something named."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._blobs = {
            f"sha256:{Path(member.name).name}": member.name
            for member in tar
            if member.isfile() and "blobs/sha256/" in member.name
        }
        self._named: set[str] = set()

    def read(self, name: str) -> bytes:
        """A file of the archive; raises LookupError or ValueError where there is none."""
        file = self._tar.extractfile(name)
        if file is None:
            raise ValueError(f"{name} is no file")
        return file.read()

    def blob(self, wanted: dict[str, Any]) -> bytes:
        """What a descriptor names."""
        if wanted["digest"] not in self._blobs:
            raise ValueError(f"blob {wanted['digest']} is missing")
        self._named.add(wanted["digest"])
        return self.read(self._blobs[wanted["digest"]])

    def unnamed(self) -> list[str]:
        """The blobs that nothing asked for."""
        return sorted(self._blobs.keys() - self._named)


def _image(path: Path) -> Iterator[str]:
    """Walk from index.json to every blob: each has its name's digest, and nothing else is there."""
    told = re.search(r"-([a-z0-9]+)(-untested)?\.oci\.tar$", path.name)
    architecture = told[1] if told else ""
    with tarfile.open(path) as tar:
        layout = _Layout(tar)
        if json.loads(layout.read("oci-layout")).get("imageLayoutVersion") != "1.0.0":
            yield "oci-layout names another version"
        pending = list(json.loads(layout.read("index.json"))["manifests"])
        while pending:
            wanted = pending.pop()
            data = layout.blob(wanted)
            yield from _named(wanted, data)
            if wanted["mediaType"] in INDEX_TYPES:
                pending += json.loads(data)["manifests"]
            else:
                yield from _manifest(layout, json.loads(data), architecture)
        for digest in layout.unnamed():
            yield f"blob {digest} is named by nothing"


def _manifest(layout: _Layout, manifest: dict[str, Any], architecture: str) -> Iterator[str]:
    config = layout.blob(manifest["config"])
    yield from _named(manifest["config"], config)
    if (named := json.loads(config).get("architecture")) != architecture:
        yield f"its configuration is for {named}, and its name says {architecture or 'nothing'}"
    plain = []
    for one in manifest["layers"]:  # one at a time: a layer may be large
        content = layout.blob(one)
        yield from _named(one, content)
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        plain.append(f"sha256:{hashlib.sha256(content).hexdigest()}")
        yield from _foreign(content, architecture)
    if plain != json.loads(config)["rootfs"]["diff_ids"]:
        yield "its layers are not those of its configuration"


def _named(wanted: dict[str, Any], data: bytes) -> Iterator[str]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if (digest, len(data)) != (wanted["digest"], wanted["size"]):
        yield f"blob {wanted['digest']} has the content of {digest}, {len(data)} bytes"


def _foreign(layer: bytes, architecture: str) -> Iterator[str]:
    """What in a layer runs on another machine; the first file is enough."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            machine = _elf_machine(file.read(20)) if file else None
            if machine not in (None, BPF, MACHINES.get(architecture)):
                yield f"{member.name} in it is for machine {machine}, and its name says {architecture}"
                return


def _together(folder: Path) -> Iterator[str]:
    """What one file says of another."""
    files = {path.name: path for path in folder.rglob("*") if path.is_file()}
    versions: dict[str, str] = {}
    for name, path in files.items():
        try:
            versions |= _version(name, path)
            if name == "plugin.yaml":
                yield from _krew(path, files)
            elif name.endswith(".cdx.json"):
                yield from _materials(path, files)
        except UNREADABLE as error:
            yield _unreadable(name, error)
    for name in sorted(files.keys() - _described(files)):
        if name.endswith(".whl") and "-none-any" not in name:
            yield f"{name}: no bill of materials describes it"
    if len(set(versions.values())) > 1:
        for name, version in sorted(versions.items()):
            yield f"{name}: has version {version}, others have another"


def _version(name: str, path: Path) -> dict[str, str]:
    if match := re.match(r"kubectl_pacto-([^-]+?)(-|\.tar\.gz$)|kubectl-pacto_v?([^_]+)_", name):
        return {name: match[1] or match[3]}
    if match := re.match(r"pacto-operator-(.+)\.tgz$", name):
        with tarfile.open(path, "r:gz") as tar:
            file = tar.extractfile("pacto-operator/Chart.yaml")
            chart = yaml.safe_load(file.read() if file else b"{}")
        same = chart["version"] == chart["appVersion"] == match[1]
        return {name: match[1] if same else f"{chart['version']} and {chart['appVersion']}"}
    return {}


def _krew(path: Path, files: dict[str, Path]) -> Iterator[str]:
    for platform in yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["platforms"]:
        name = platform["uri"].rpartition("/")[2]
        if name not in files:
            yield f"{path.name}: {name} is not part of the release"
        elif sha256(files[name]) != platform["sha256"]:
            yield f"{path.name}: its digest of {name} is another"


def _materials(path: Path, files: dict[str, Path]) -> Iterator[str]:
    bill = json.loads(path.read_text(encoding="utf-8"))
    if bill.get("bomFormat") != "CycloneDX":
        yield f"{path.name}: is no CycloneDX"
    for one in bill["components"]:
        if one.get("type") == "file":
            name = one["name"]
            if name not in files or sha256(files[name]) != one["hashes"][0]["content"]:
                yield f"{path.name}: describes another {name}"
            elif not _same_machine(path.name, name):
                yield f"{path.name}: describes {name}, which is for another machine"


def _same_machine(bill: str, wheel: str) -> bool:
    """Whether a bill's architecture is the wheel's; a pure wheel has every one."""
    mine, its = (
        {number for word, number in MACHINES.items() if name.endswith(f"{word}{end}")}
        for name, end in ((bill, ".cdx.json"), (wheel, ".whl"))
    )
    return not its or mine == its


def _described(files: dict[str, Path]) -> set[str]:
    """The wheels that a bill of materials describes."""
    found = set()
    for name, path in files.items():
        if name.endswith(".cdx.json"):
            with contextlib.suppress(*UNREADABLE):  # said elsewhere
                found |= {one["name"] for one in json.loads(path.read_text())["components"]}
    return found


def main(argv: list[str] | None = None) -> int:
    """Verify, and say what is wrong, one line each."""
    parser = argparse.ArgumentParser(description="Hashes a release again, whole and in its parts.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="list the digests first, of parts put together")
    arguments = parser.parse_args(argv)
    folder: Path = arguments.folder
    if not folder.is_dir():
        print(f"release: {folder} is no folder", file=sys.stderr)
        return 2
    if arguments.write:
        write_sums(folder)
    found = problems(folder)
    for one in found:
        print(f"release: {one}", file=sys.stderr)
    if not found:
        print(f"{folder}: {sum(path.is_file() for path in folder.rglob('*'))} files hold together")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
