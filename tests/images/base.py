# SPDX-License-Identifier: MIT
"""Root file systems from Debian packages, cached; every image and every emulated kernel uses them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.deps import missing_text
from tests.cluster.layout import ClusterError, cache
from tests.cluster.node_config import SANDBOX_IMAGE
from tests.images import oci

SUITE: Final = "bookworm"
# Removed after the installation: nobody reads a manual in a test pod, the Perl beside perl-base serves
# maintainer scripts alone, and the JIT of postgresql, which is off, would be 100 MB of LLVM.
REMOVED: Final = (
    "usr/share/doc/*",
    "usr/share/man/*",
    "usr/share/locale/*",
    "usr/share/perl",
    "usr/lib/*-linux-gnu/perl",
    "usr/lib/*-linux-gnu/libLLVM*",
    "usr/lib/*-linux-gnu/libz3*",
    "var/cache/*",
    "var/log/*",
)


@dataclass(frozen=True)
class Root:
    """A root of these packages, as a tar file and as a directory.

    Of this machine's architecture, or of another one whose programs the kernel hands to an emulator.
    """

    name: str
    packages: tuple[str, ...]
    architecture: str = ""
    removed: tuple[str, ...] = REMOVED

    @property
    def key(self) -> str:
        """Name and hash of the recipe."""
        another = [self.architecture] if self.architecture else []
        recipe = "\0".join([SUITE, *self.packages, "", *self.removed, *another])
        return f"{self.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"

    def tar(self) -> Path:
        """The root as one tar file, made unless it is cached."""
        path = images_cache() / f"{self.key}.tar"
        with locked(path):
            if not path.exists():
                self._bootstrap(path)
        return path

    def layer(self) -> oci.Layer:
        """The root as an image layer."""
        return oci.Layer.of(self.tar())

    def directory(self) -> Path:
        """The root unpacked; to be read, never written."""
        source = self.tar()
        path = images_cache() / self.key
        with locked(path):
            if not path.exists():
                unfinished = path.with_name(f"{path.name}.part")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                subprocess.run(
                    ["tar", "-C", str(unfinished), "--numeric-owner", "-xpf", str(source)], check=True
                )
                unfinished.rename(path)
        return path

    def _bootstrap(self, path: Path) -> None:
        if absent := missing_text("images"):
            raise ClusterError(absent)
        begin = time.monotonic()
        unfinished = path.with_name(f"{path.name}.part.tar")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(self.packages)}"]
        hook = f'--customize-hook=cd "$1" && rm -rf {" ".join(self.removed)}'
        command += [f"--architectures={self.architecture}"] if self.architecture else []
        command += ['--aptopt=APT::Install-Recommends "false"', hook]
        done = subprocess.run(
            [*command, SUITE, str(unfinished), mirror()], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ClusterError(f"mmdebstrap of {self.name}: {done.stderr.strip()[-2000:]}")
        unfinished.rename(path)
        print(f"made root {self.name} in {time.monotonic() - begin:.0f} s", flush=True)


# libelf: the one shared library that the agent does not bring
BASE: Final = Root("base", ("python3", "libelf1", "iproute2"))
SERVERS: Final = Root("servers", ("nginx-light", "postgresql", "redis-server"))


def images_cache() -> Path:
    """Where roots and archives are kept."""
    path = cache() / "images"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Makers of the same thing wait for each other."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def mirror() -> str:
    """The Debian mirror that this machine's apt uses."""
    command = ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split()[1] for line in lines if line.split()[1].rstrip("/").endswith("/debian")]
    if not found:
        raise ClusterError("apt on this machine has no Debian mirror to take packages from")
    return found[0]


def pack(source: Path, target: Path, names: Sequence[str] = (".",)) -> Path:
    """A directory as a tar layer, owners kept as numbers."""
    unfinished = target.with_name(f"{target.name}.part")
    subprocess.run(["tar", "-C", str(source), "--numeric-owner", "-cf", str(unfinished), *names], check=True)
    unfinished.rename(target)
    return target


def pause_archive(target: Path) -> Path:
    """The sandbox image: a static busybox that sleeps."""
    if target.exists():
        return target
    busybox = Path("/bin/busybox")
    if not busybox.exists():
        raise ClusterError(missing_text("cluster"))
    layer = target.with_name("pause.layer")
    with tarfile.open(layer, "w") as tar:
        oci.add_bytes(tar, "bin/busybox", busybox.read_bytes(), mode=0o755)
    image = oci.Image(SANDBOX_IMAGE, (oci.Layer.of(layer),), ("/bin/busybox", "sleep", "infinity"))
    return oci.write(target, [image])
