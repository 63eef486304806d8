# SPDX-License-Identifier: MIT
"""The release before this one: its image, and the tree from which its plugin runs.

It is the last tag `v*` before the commit that is checked out. Before the first tag, this tree stands in
for it under an older version, with a CRD that lacks one field of today's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.layout import REPOSITORY, ClusterError, cache
from tests.images import base, oci, runtime, workloads

NAME: Final = "localhost/pacto-runtime:previous"
BROKEN: Final = "localhost/pacto-runtime:broken"
STAND_IN: Final = "0.0.1"
PACKAGE: Final = "kubectl_pacto/__init__.py"
CRD: Final = "kubectl_pacto/controller/manifests/crds/noderuntimeobservations.yaml"
# of the stand-in's CRD; the server drops it from what its agents write
LACKING: Final = "apiRequestsPerMinute"
INSTALLED: Final = f"usr/local/lib/python{'.'.join(map(str, runtime.PYTHON))}/dist-packages"
# starts, as far as a kubelet can tell, and ends soon
ENDS_SOON: Final = b"#!/bin/sh\nsleep 2\nexit 1\n"


@dataclass(frozen=True)
class Release:
    """A version: where it is from, the tree of its plugin, and the archive of its image NAME."""

    origin: str
    version: str
    tree: Path
    archive: Path


def previous(folder: Path, repository: Path = REPOSITORY) -> Release:
    """The release before this one; a stand-in's tree is made in `folder`. Raises ClusterError."""
    tag = previous_tag(repository)
    return of_tag(tag, repository) if tag else stand_in(folder)


def previous_tag(repository: Path) -> str:
    """The last tag of a release before the commit that is checked out; empty if none can be reached."""
    words = ["describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^"]
    done = _git(repository, words)
    return "" if done.returncode else done.stdout.strip()


def _git(repository: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(repository), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def of_tag(tag: str, repository: Path = REPOSITORY) -> Release:
    """What was tagged, built from an export of it."""
    commit = _git(repository, ["rev-parse", f"{tag}^{{commit}}"]).stdout.strip()[:16]
    tree = cache() / "releases" / commit
    tree.parent.mkdir(parents=True, exist_ok=True)
    with base.locked(tree):
        if not tree.exists():
            export(tag, repository, tree)
    root = runtime.root_with([runtime.wheels_of(tree, f"release-{commit}")])
    return Release(tag, version_of(tree), tree, _archive(NAME, runtime.layers(root)))


def export(tag: str, repository: Path, target: Path) -> None:
    """The files of a tag, and nothing else. Raises ClusterError."""
    archive, unfinished = target.with_name(f"{target.name}.tar"), target.with_name(f"{target.name}.part")
    done = _git(repository, ["archive", "--format=tar", f"--output={archive}", tag])
    if done.returncode:
        raise ClusterError(f"git archive {tag}: {done.stderr.strip()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    with tarfile.open(archive) as tar:
        # since 3.11.4, and asked for since 3.14
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(unfinished)
    archive.unlink()
    unfinished.rename(target)


def version_of(tree: Path) -> str:
    """The version that a tree gives itself."""
    found = re.search(r'^__version__.* = "(.+)"$', (tree / PACKAGE).read_text(), re.MULTILINE)
    if found is None:
        raise ClusterError(f"{tree / PACKAGE} has no __version__")
    return found[1]


def stand_in(folder: Path) -> Release:
    """This tree as an older version; its image is today's with one small layer above."""
    tree, own = folder / "tree", version_of(REPOSITORY)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "kubectl_pacto", tree / "kubectl_pacto", ignore=ignored)
    package, crd = tree / PACKAGE, tree / CRD
    package.write_text(package.read_text().replace(f'"{own}"', f'"{STAND_IN}"'))
    crd.write_text(_without(crd.read_text(), LACKING))
    above = _layer(folder / "version.tar", f"{INSTALLED}/{PACKAGE}", package.read_bytes())
    layers = (*runtime.layers(runtime.directory()), above)
    return Release(f"this tree, called {STAND_IN}", STAND_IN, tree, _archive(NAME, layers))


def broken(folder: Path) -> Path:
    """The archive of BROKEN: today's image, whose program ends two seconds after each start."""
    above = _layer(folder / "broken.tar", "usr/local/bin/pacto", ENDS_SOON, mode=0o755)
    return _archive(BROKEN, (*runtime.layers(runtime.directory()), above))


def _without(crd: str, name: str) -> str:
    """A CRD's text without one property: its line, and those that are further in."""
    made, count = re.subn(rf"^( +){name}:\n(?:\1 +.*\n)+", "", crd, flags=re.MULTILINE)
    if count != 1:
        raise ClusterError(f"{CRD} has {count} properties {name}")
    return made


def _layer(target: Path, name: str, content: bytes, mode: int = 0o644) -> oci.Layer:
    with tarfile.open(target, "w") as tar:
        oci.add_bytes(tar, name, content, mode)
    return oci.Layer.of(target)


def _archive(name: str, layers: Sequence[oci.Layer]) -> Path:
    image = oci.Image(name, tuple(layers), entrypoint=("pacto",))
    return workloads.archive([image], "runtime-further")
