# SPDX-License-Identifier: MIT
"""The production Dockerfile, built by buildah from the local root; it and the local image start."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.layout import REPOSITORY
from tests.images import base, runtime
from tests.support.require import require_programs, require_root

pytestmark = pytest.mark.cluster
BASE_NAME = "localhost/pacto-base:1"
Buildah = Callable[..., str]


@pytest.fixture
def buildah(tmp_path: Path) -> Iterator[Buildah]:
    """buildah with a store of the test's own: no daemon, no network, no other user's images."""
    require_root("cluster")
    require_programs("cluster", "buildah", "mmdebstrap")
    store = ["--root", str(tmp_path / "root"), "--runroot", str(tmp_path / "run"), "--storage-driver", "vfs"]

    def run(*arguments: str) -> str:
        done = subprocess.run(["buildah", *store, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    yield run
    run("rm", "--all")
    run("rmi", "--all", "--force")


def in_root(root: Path, *command: str) -> str:
    """Run a command in a root directory."""
    done = subprocess.run(["chroot", str(root), *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_dockerfile_builds_on_the_base_it_is_given(buildah: Buildah, tmp_path: Path) -> None:
    """The base is an argument; the image has `pacto` and its agent."""
    empty = buildah("from", "scratch")
    buildah("add", empty, str(base.BASE.tar()), "/")
    buildah("commit", "--quiet", empty, BASE_NAME)
    dockerfile = str(REPOSITORY / "agent/Dockerfile")
    options = ["--isolation=chroot", "--pull-never", "--build-arg", f"BASE={BASE_NAME}", "--file", dockerfile]
    buildah("build", "--quiet", *options, "--tag", "localhost/pacto-built:1", str(runtime.wheels()))
    working = buildah("from", "--pull-never", "localhost/pacto-built:1")
    root = Path(buildah("mount", working))
    assert "usage: pacto agent" in in_root(root, "pacto", "agent", "--help")
    assert not (root / "tmp/wheels").exists()
    assert buildah("inspect", "--format", "{{.OCIv1.Config.Entrypoint}}", working) == "[pacto]"
    built = in_root(root, "pacto", "--help")
    assert built == in_root(runtime.directory(), "pacto", "--help")


@pytest.mark.parametrize("command", ["agent", "operator"])
def test_the_local_image_starts_its_commands(command: str) -> None:
    """Both commands of the image."""
    require_root("cluster")
    require_programs("cluster", "mmdebstrap")
    root = runtime.directory()
    assert f"pacto {command}" in in_root(root, "pacto", command, "--help")
