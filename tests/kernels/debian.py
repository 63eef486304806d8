# SPDX-License-Identifier: MIT
"""A Debian kernel and the few of its modules that tests need, fetched by apt and cached."""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.layout import ClusterError, cache
from tests.images.base import locked, mirror

SUITES: Final = {"bullseye": "5.10", "bookworm": "6.1", "trixie": "6.12"}
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
META_PACKAGE: Final = "linux-image-cloud-{}"
ARCHITECTURES: Final = ("amd64", "arm64")
BUSYBOX: Final = "/bin/busybox"
# the disk, its file system with its checksum, what tests make pod-like networks of, and a packet
# filter that refuses as kube-proxy does
DISK: Final = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
MODULES: Final = (*DISK, "veth", "dummy", "bridge", "nft_reject_ipv4")


@dataclass(frozen=True)
class Kernel:
    """What a boot needs: the image, and the modules in the order they are loaded."""

    directory: Path

    @property
    def busybox(self) -> Path:
        """The programs of the first steps: of this machine, or fetched with another one's kernel."""
        fetched = self.directory / "busybox"
        return fetched if fetched.exists() else Path(BUSYBOX)

    @property
    def image(self) -> Path:
        """The compressed kernel."""
        return self.directory / "vmlinuz"

    def modules(self) -> list[Path]:
        """Each after those it depends on."""
        return sorted(self.directory.glob("*.ko"))


def kernel(suite: str, architecture: str = "amd64") -> Kernel:
    """The suite's kernel, fetched unless it is cached."""
    if suite not in SUITES:
        raise ClusterError(f"no kernel of {suite!r} here; of: {', '.join(SUITES)}")
    if architecture not in ARCHITECTURES:
        raise ClusterError(f"no kernel for {architecture!r} here; for: {', '.join(ARCHITECTURES)}")
    named = suite if architecture == "amd64" else f"{suite}-{architecture}"
    chosen = hashlib.sha256("\0".join(MODULES).encode()).hexdigest()[:8]
    path = cache() / "kernels" / f"{named}-{chosen}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        if not path.exists():
            with tempfile.TemporaryDirectory() as work:
                tree = _fetch(suite, architecture, Path(work))
                unfinished = path.with_name(f"{path.name}.part")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                _keep(tree, unfinished)
                unfinished.rename(path)
    return Kernel(path)


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{command[0]}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def _fetch(suite: str, architecture: str, work: Path) -> Path:
    """Download and unpack the packages with an apt of our own, whose lists hold this suite alone."""
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (work / name).mkdir(parents=True)
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
    settings = {
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": work / "parts",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _run("apt-get", *options, "update", cwd=work)
    meta = META_PACKAGE.format(architecture)
    # of this suite by name: a machine of a newer suite has newer versions installed
    newest = _run("apt-cache", *options, "madison", meta, cwd=work).split("|")[1].strip()
    described = _run("apt-cache", *options, "show", f"{meta}={newest}", cwd=work)
    package = re.search(r"linux-image-\d[^ ,]*", described)
    if package is None:
        raise ClusterError(f"{meta} of {suite} depends on no kernel")
    _run("apt-get", *options, "download", package[0], cwd=work)
    if architecture != "amd64":
        _run("apt-get", *options, "download", "busybox-static", cwd=work)
    for archive in work.glob("*.deb"):
        _run("dpkg-deb", "-x", str(archive), "tree", cwd=work)
    return work / "tree"


def _keep(tree: Path, target: Path) -> None:
    """The kernel and the wanted modules with their dependencies, uncompressed, numbered."""
    (image,) = (tree / "boot").glob("vmlinuz-*")
    shutil.copy(image, target / "vmlinuz")
    if (busybox := tree / BUSYBOX.lstrip("/")).exists():
        shutil.copy(busybox, target / "busybox")
    files = [path for path in tree.rglob("*.ko*") if path.is_file()]
    named = {path.name.partition(".ko")[0].replace("-", "_"): path for path in files}
    builtin = {
        Path(line).stem.replace("-", "_")
        for listing in tree.rglob("modules.builtin")
        for line in listing.read_text().split()
    }
    for number, (name, content) in enumerate(ordered(MODULES, named, builtin).items()):
        (target / f"{number:02d}-{name}.ko").write_bytes(content)


def read_module(path: Path) -> bytes:
    """A module file's content, uncompressed."""
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def ordered(wanted: Sequence[str], named: Mapping[str, Path], builtin: set[str]) -> dict[str, bytes]:
    """The wanted modules and all they depend on, dependencies first; what is built in is left out."""
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in found or name in builtin:
            return
        if name not in named:
            raise ClusterError(f"this kernel has no module {name}")
        content = read_module(named[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for dependency in depends[1].decode().split(",") if depends else []:
            if dependency:
                add(dependency.replace("-", "_"))
        found[name] = content

    for name in wanted:
        add(name)
    return found
