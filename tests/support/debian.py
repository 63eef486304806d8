# SPDX-License-Identifier: MIT
"""Programs out of Debian packages without installing them: an installed server would start itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def unpacked(package: str, program: str) -> Path | None:
    """The program, from PATH or from its package unpacked into the cache; None where apt has none."""
    if found := shutil.which(program):
        return Path(found)
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    target = Path(root) / "kubectl-pacto" / "packages" / package
    inside = target / "usr" / "bin" / program
    if not inside.exists() and shutil.which("apt-get"):
        _unpack(package, target)
    return inside if inside.exists() else None


def _unpack(package: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        # as root apt would download as a user of its own, who may not write here
        command = ["apt-get", "-o", "APT::Sandbox::User=root", "download", package]
        for attempt in range(2):
            if subprocess.run(command, cwd=work, capture_output=True, check=False).returncode == 0:
                break
            if attempt == 0:
                subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        archives = list(Path(work).glob("*.deb"))
        if archives:
            subprocess.run(["dpkg-deb", "-x", archives[0], target], check=True)
