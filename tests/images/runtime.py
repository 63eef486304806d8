# SPDX-License-Identifier: MIT
"""The runtime image without a registry: the checkout's wheel on the Debian root.

`agent/Dockerfile` makes the same image where a builder and a base are at hand; this way takes
seconds, needs neither, and gives the emulated kernels their root directory.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.layout import REPOSITORY, ClusterError, cache
from tests.images import base, oci

KEPT_SECONDS: Final = 24 * 3600
NAME: Final = "localhost/pacto-runtime:1"
# Debian 12's; a wheel with compiled parts fits one minor version
PYTHON: Final = (3, 11)
INPUTS: Final = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "NOTICE",
    "kubectl_pacto",
    "agent",
    "bpf",
    "ext",
)
# In the root's own pip: any base with a Python takes the wheels, also one without pip.
INSTALL: Final = (
    "set -e; cd /tmp/wheels; python3 $(echo pip-*.whl)/pip install --quiet --no-index --find-links=. "
    '--no-cache-dir --root-user-action=ignore --break-system-packages "$@"'
)


def sources() -> list[Path]:
    """The files that decide what the wheel is, as git sees them (with those not yet committed)."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *INPUTS]
    done = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"git ls-files: {done.stderr.strip()}")
    names = sorted(name for name in done.stdout.split("\0") if name and name != "agent/Dockerfile")
    return [Path(name) for name in names if (REPOSITORY / name).is_file()]


@functools.cache
def wheels() -> Path:
    """A directory with the checkout's wheel, everything it depends on, and pip itself.

    As the checkout was when this program first asked: all of a run's images are of one state.
    """
    names = sources()
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode() + (REPOSITORY / name).read_bytes())
    path = wheel_cache() / digest.hexdigest()[:16]
    with base.locked(path):
        if not path.exists():
            with tempfile.TemporaryDirectory() as copy:
                # a build leaves files in its tree, and another may run there
                for name in names:
                    target = Path(copy) / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(REPOSITORY / name, target)
                _pip_wheel(path, copy, "pip")
    return path


def wheels_of(tree: Path, key: str) -> Path:
    """The same of another tree, which the build may leave files in."""
    path = wheel_cache() / key
    with base.locked(path):
        if not path.exists():
            _pip_wheel(path, str(tree), "pip")
    return path


def further_wheels(names: Sequence[str]) -> Path:
    """A directory with these distributions and what they depend on."""
    path = wheel_cache() / "-".join(sorted(names))
    with base.locked(path):
        if not path.exists():
            _pip_wheel(path, *names)
    return path


def wheel_cache() -> Path:
    """Where directories of wheels are kept; only for the Python that the image has."""
    if sys.version_info[:2] != PYTHON:
        raise ClusterError(f"the image's Python is {PYTHON[0]}.{PYTHON[1]}: its wheels need the same version")
    path = cache() / "wheels"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _pip_wheel(path: Path, *wanted: str) -> None:
    begin = time.monotonic()
    unfinished = path.with_name(f"{path.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(unfinished), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"pip wheel: {done.stderr.strip()[-3000:]}")
    unfinished.rename(path)
    print(f"built wheels in {time.monotonic() - begin:.0f} s", flush=True)


def directory(extra: Sequence[str] = ()) -> Path:
    """The runtime root as a directory, with further distributions where a test needs them."""
    return root_with([wheels(), *([further_wheels(extra)] if extra else [])], extra)


def root_with(taken: Sequence[Path], extra: Sequence[str] = (), root: base.Root = base.BASE) -> Path:
    """Debian's root with what these directories of wheels bring."""
    path = base.images_cache() / "-".join(["runtime", root.key, *(one.name for one in taken)])
    with base.locked(path):
        if not path.exists():
            _install(path, taken, extra, root)
    return path


def _install(path: Path, taken: Sequence[Path], extra: Sequence[str], root: base.Root) -> None:
    unfinished = path.with_name(f"{path.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", str(root.directory()), str(unfinished)], check=True)
    for one in taken:
        shutil.copytree(one, unfinished / "tmp/wheels", dirs_exist_ok=True)
    command = ["chroot", str(unfinished), "sh", "-c", INSTALL, "sh", "kubectl-pacto", *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"pip install in the root: {done.stderr.strip()[-3000:]}")
    shutil.rmtree(unfinished / "tmp/wheels")
    unfinished.touch()  # the copy has Debian's time
    unfinished.rename(path)
    prune()


def prune() -> None:
    """Every state of the checkout has a root, an image and a disk of its own: forget yesterday's."""
    limit = time.time() - KEPT_SECONDS
    for path in [*base.images_cache().glob("runtime-*"), *wheel_cache().iterdir()]:
        if path.stat().st_mtime < limit:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def layers(root: Path) -> tuple[oci.Layer, ...]:
    """Debian's root, and above it what the wheels put under /usr/local."""
    layer = root.with_name(f"{root.name}.layer.tar")
    with base.locked(layer):
        if not layer.exists():
            base.pack(root, layer, ["usr/local"])
    return base.BASE.layer(), oci.Layer.of(layer)


def archive() -> Path:
    """The runtime image of the checkout."""
    root = directory()
    target = root.with_name(f"{root.name}.oci.tar")
    with base.locked(target):
        if not target.exists():
            oci.write(target, [oci.Image(NAME, layers(root), entrypoint=("pacto",))])
    return target
