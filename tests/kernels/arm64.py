# SPDX-License-Identifier: MIT
"""A root of arm64 with the release's wheel and what tests need, for the kernel tier under a kernel of arm64.

Made by user-mode emulation, as `make release-dry-run` makes the wheel; its kernel then runs in the same
emulator as the others.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from kubectl_pacto import __version__
from scripts import release, release_verify
from scripts.release_machines import ReleaseError
from tests.cluster.layout import REPOSITORY, ClusterError
from tests.images import base, runtime
from tests.kernels import tier

# nft: the others get this machine's own, which is of another architecture
ROOT: Final = base.Root("kernels", (*base.BASE.packages, "nftables"), "arm64")
RELEASE: Final = REPOSITORY / "dist" / "release"


def wheel(folder: Path = RELEASE) -> Path:
    """The native wheel of arm64 in a release; raises ClusterError where there is none."""
    found = sorted(folder.glob(f"kubectl_pacto-{__version__}-*_aarch64.whl"))
    if not found:
        raise ClusterError(f"no wheel of arm64 in {folder} (make release-dry-run)")
    return found[0]


def root(taken: Path) -> Path:
    """The root with this wheel, made unless it is cached; raises ClusterError."""
    wheels = runtime.wheel_cache() / f"arm64-{release_verify.sha256(taken)[:16]}"
    with tempfile.TemporaryDirectory() as name:
        shared = (Path(name), taken.parent)
        try:
            with release.machines_of(["arm64"], shared) as (machine,):
                if not wheels.exists():
                    made = Path(name) / "wheels"
                    pip = release.pip_of(machine, release.Place(RELEASE, Path(name)))
                    machine.run(pip, *release.PIP_WHEEL, "--wheel-dir", made, taken, "pip", *tier.EXTRA)
                    shutil.move(made, wheels)
                return runtime.root_with([wheels], tier.EXTRA, ROOT)
        except ReleaseError as error:
            raise ClusterError(str(error)) from error
