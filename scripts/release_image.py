# SPDX-License-Identifier: MIT
"""The runtime image of one architecture: Debian's root, agent/Dockerfile, the release's own wheel."""

from __future__ import annotations

import dataclasses
import difflib
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from kubectl_pacto import __version__
from scripts.release_machines import ROOT, Machine, ReleaseError, run
from tests.cluster.layout import ClusterError
from tests.images import base

BASE: Final = "localhost/base:1"
NAME: Final = f"localhost/pacto:{__version__}"
# a pod that is ready and never opened its port: the kernel's view decides
EXAMPLE: Final = ROOT / "docs" / "examples" / "ready-but-silent.yaml"
JUDGE: Final = ("evaluate", "--at", "2026-10-18T09:12:44Z", "--fail-on", "never", "-o", "json", "-f")


def build(machine: Machine, wheels: Path, work: Path, target: Path) -> str:
    """Build it, start its commands, write it as an OCI archive; one line about what ran."""
    if shutil.which("buildah") is None:
        raise ReleaseError("image: buildah is missing (apt-get install buildah)")
    try:
        root = dataclasses.replace(base.BASE, architecture=machine.foreign).tar()
    except ClusterError as error:
        raise ReleaseError(f"image: {error}") from error
    store = ("--root", work / "store", "--runroot", work / "run", "--storage-driver", "vfs")
    buildah = partial(run, "buildah", *store)
    arch = ("--arch", machine.architecture)
    try:
        empty = buildah("from", *arch, "scratch").strip()
        buildah("config", *arch, empty)
        buildah("add", empty, root, "/")
        buildah("commit", "--quiet", empty, BASE)
        options = ("--isolation=chroot", "--pull-never", "--timestamp", "0", "--build-arg", f"BASE={BASE}")
        dockerfile = ROOT / "agent" / "Dockerfile"
        buildah("build", "--quiet", *arch, *options, "--file", dockerfile, "--tag", NAME, wheels)
        said = start(buildah, arch, expected(wheels, work / "unpacked"))
        buildah("push", "--quiet", NAME, f"oci-archive:{target}:{__version__}")
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")
    return f"{target.name}: {said}"


def expected(wheels: Path, folder: Path) -> str:
    """What the same sources say of the example on this machine: the wheel's Python is the same on all."""
    (wheel,) = wheels.glob("kubectl_pacto-*.whl")
    shutil.unpack_archive(wheel, folder, "zip")
    words = ("-P", "-m", "kubectl_pacto", *JUDGE, EXAMPLE)
    return run(sys.executable, *words, cwd=folder, PYTHONPATH=str(folder))


def start(buildah: Any, arch: tuple[str, str], judged: str) -> str:
    """Start what the image has; raises ReleaseError where it does not do what this machine does."""
    working = buildah("from", *arch, "--pull-never", NAME).strip()
    inside = partial(
        buildah, "run", "--isolation=chroot", "--volume", f"{EXAMPLE.parent}:/examples:ro", working, "--"
    )
    if __version__ not in inside("kubectl-pacto", "--version"):
        raise ReleaseError("image: its kubectl-pacto has another version")
    there = inside("kubectl-pacto", *JUDGE, f"/examples/{EXAMPLE.name}")
    if there != judged:
        lines = difflib.unified_diff(
            judged.splitlines(), there.splitlines(), "here", "in the image", "", "", 1
        )
        raise ReleaseError(f"image: it judges {EXAMPLE.name} in another way:\n" + "\n".join(lines))
    told = inside("sh", "-c", "pacto agent inspect || true")
    wanted = ("libbpf ", "object flow.bpf.o ", "object iter.bpf.o ")
    for word in wanted:
        if not any(line.startswith(f"ok       {word}") for line in told.splitlines()):
            raise ReleaseError(f"image: pacto agent inspect says of {word.strip()}:\n{told}")
    return "version, evaluate and agent inspect ran"
