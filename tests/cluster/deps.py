# SPDX-License-Identifier: MIT
"""The Debian packages that the cluster, the images and the kernels need, and their installation."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.cluster.layout import ClusterError

# program -> package: what is on PATH decides, so a machine with its own containerd keeps it.
CLUSTER: Final = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "conntrack": "conntrack",
    "iptables": "iptables",
    "ip": "iproute2",
    "ethtool": "ethtool",
    "nsenter": "util-linux",
    "mount": "mount",
    "openssl": "openssl",
    "sysctl": "procps",
    "/bin/busybox": "busybox-static",  # the sandbox image
}
IMAGES: Final = {"mmdebstrap": "mmdebstrap", "buildah": "buildah", "openssl": "openssl"}
KERNELS: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "cpio": "cpio",
    "mke2fs": "e2fsprogs",
    "xz": "xz-utils",
    "dpkg-deb": "dpkg",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
    "/bin/busybox": "busybox-static",  # the initramfs
}
# nothing of the tier needs these: python -m tests.kernels tier --architecture arm64
KERNELS_ARM64: Final = {
    "qemu-system-aarch64": "qemu-system-arm",
    "qemu-aarch64-static": "qemu-user-static",
    "arch-test": "arch-test",
}
BROWSER: Final = {
    "chromium": "chromium",
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf": "fonts-dejavu-core",
}
GROUPS: Final = {
    "cluster": CLUSTER,
    "images": IMAGES,
    "kernels": KERNELS,
    "kernels-arm64": KERNELS_ARM64,
    "browser": BROWSER,
}
SEARCH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def program(name: str) -> str | None:
    """Where a program is, with the administrator's directories searched too; a path is itself."""
    if name.startswith("/"):
        return name if Path(name).exists() else None
    path = f"{os.environ.get('PATH', '')}:{SEARCH}"
    return shutil.which(name, path=path)


def missing(*groups: str) -> dict[str, str]:
    """Programs of these groups that are not here, each with its package."""
    wanted = {name: package for group in groups for name, package in GROUPS[group].items()}
    return {name: package for name, package in wanted.items() if program(name) is None}


def missing_text(*groups: str) -> str:
    """One sentence about what is missing; empty when nothing is."""
    absent = missing(*groups)
    if not absent:
        return ""
    return f"not installed: {', '.join(sorted(absent))} (python -m tests.cluster deps)"


def install(*groups: str) -> list[str]:
    """Install what is missing with apt-get; the packages installed."""
    packages = sorted(set(missing(*groups).values()))
    if not packages:
        return []
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages]
    try:
        subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment)
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ClusterError(f"cannot install {' '.join(packages)}: {error}") from error
    if absent := missing(*groups):
        raise ClusterError(f"still missing after apt-get: {', '.join(absent)}")
    return packages
