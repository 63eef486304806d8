# SPDX-License-Identifier: MIT
"""Which libbpf is bundled: one of 1.x, which reads the type information of current kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pacto_agent.libbpf import load_libbpf

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ext" / "pacto_native" / "build_libbpf.py"
FAKE = '#!/bin/sh\ncase "$1" in --modversion) echo {version};; *) echo {folder};; esac\n'


def build(tmp_path: Path, version: str) -> subprocess.CompletedProcess[str]:
    """Run the build script where pkg-config tells of a libbpf that is not there."""
    fake = tmp_path / "pkg-config"
    fake.write_text(FAKE.format(version=version, folder=tmp_path))
    fake.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if key != "LIBBPF_A"} | {"PATH": path}
    command = [sys.executable, str(SCRIPT)]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["0.5.0", "0.8.1"])
def test_a_library_that_would_not_read_new_kernels_types_is_refused(tmp_path: Path, version: str) -> None:
    done = build(tmp_path, version)
    assert done.returncode != 0
    assert f"libbpf {version} is too old" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_newer_one_goes_on_to_look_for_its_archive(tmp_path: Path) -> None:
    done = build(tmp_path, "1.4.0")
    assert f"{tmp_path}/libbpf.a is missing" in done.stderr


def test_the_bundled_library_says_its_version_and_is_1_or_newer() -> None:
    bpf = load_libbpf()
    version = bpf.ffi.string(bpf.lib.libbpf_version_string()).decode()
    assert int(version.removeprefix("v").partition(".")[0]) >= 1, version
