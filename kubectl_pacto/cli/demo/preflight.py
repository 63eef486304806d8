# SPDX-License-Identifier: MIT
"""What this machine lacks for the demo, each with what to do about it.

`missing` is a function of Facts; `read_facts` looks. Everything is reported at once: nobody should
fix one thing to learn of the next.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kubectl_pacto.cli.demo import cgroups
from kubectl_pacto.errors import DemoImpossible

OLDEST_KERNEL: Final = (5, 8)
BTF_PATH: Final = "/sys/kernel/btf/vmlinux"
CAPABILITIES: Final = {
    "SYS_ADMIN": 21,  # network namespaces
    "NET_ADMIN": 12,  # the bridge
    "SYS_PTRACE": 19,  # other processes' namespaces
    "PERFMON": 38,
    "BPF": 39,
}
SYS_ADMIN: Final = 21
STANDS_FOR: Final = ("PERFMON", "BPF")  # SYS_ADMIN includes them
NATIVE_MODULES: Final = ("pacto_native._libbpf", "pacto_native.ring", "pacto_native.procfs")


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides whether the demo can run."""

    system: str
    release: str = ""
    root: bool = False
    capabilities: int = 0
    has_btf: bool = False
    native_missing: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()  # the usable cgroup mounts
    writable: tuple[str, ...] = ()  # and those where directories can be made
    command: str = "kubectl-pacto demo"


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that is not there, and the remedy."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"- {self.what}\n  -> {self.remedy}"


def missing(facts: Facts) -> list[Missing]:
    """Everything that keeps the demo from running; empty if nothing does."""
    if facts.system != "Linux":
        what = f"Linux {_dotted(OLDEST_KERNEL)} or later: this is {facts.system}, which has no eBPF"
        return [Missing(what, "run it in a Linux virtual machine; `kubectl pacto evaluate` works here")]
    return list(_missing_on_linux(facts))


def _missing_on_linux(facts: Facts) -> Iterator[Missing]:
    if _version(facts.release) < OLDEST_KERNEL:
        what = f"a kernel of {_dotted(OLDEST_KERNEL)} or later: this is {facts.release}"
        yield Missing(what, "boot a newer kernel; current Debian, Ubuntu and Fedora ship one")
    if facts.native_missing:
        what = f"the native parts of this package ({', '.join(facts.native_missing)})"
        yield Missing(what, "install the Linux wheel, or in a source checkout run: make build")
    if not facts.has_btf:
        what = f"type information of the kernel (BTF) at {BTF_PATH}"
        yield Missing(what, "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions ship it")
    if not facts.root:
        yield Missing("root, to make network namespaces and load a BPF program", f"run: sudo {facts.command}")
        return  # what root may do here shows only then
    if lacking := _lacking(facts.capabilities):
        what = f"the capabilit{'ies' if len(lacking) > 1 else 'y'} {', '.join(lacking)} (root of a container)"
        yield Missing(what, "run it on the host, or start the container with --privileged --pid=host")
    if not facts.writable:
        where = ", ".join(facts.mounts) or f"none is mounted at {cgroups.ROOT}"
        what = f"a writable cgroup hierarchy ({where}): a pod is named by the cgroup of its processes"
        remedy = "mount -o remount,rw /sys/fs/cgroup, or start the container with --privileged"
        yield Missing(what, remedy if facts.mounts else "mount -t cgroup2 none /sys/fs/cgroup")


def _lacking(held: int) -> list[str]:
    has_admin = held >> SYS_ADMIN & 1
    return [
        name
        for name, bit in CAPABILITIES.items()
        if not held >> bit & 1 and not (has_admin and name in STANDS_FOR)
    ]


def _version(release: str) -> tuple[int, ...]:
    parts = release.split("-", maxsplit=1)[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def read_facts() -> Facts:
    """The facts of this machine and installation."""
    system, command = platform.system(), shlex.join([sys.argv[0], "demo"])
    if system != "Linux":
        return Facts(system, command=command)
    listed = cgroups.hierarchies(_read("/proc/mounts"))
    mounts = tuple(root for root in listed if Path(root, "cgroup.procs").exists())  # others are covered
    return Facts(
        system=system,
        release=os.uname().release,
        root=os.geteuid() == 0,
        capabilities=_capabilities(_read("/proc/self/status")),
        has_btf=os.access(BTF_PATH, os.F_OK),
        native_missing=_native_missing(),
        mounts=mounts,
        writable=tuple(root for root in mounts if cgroups.is_writable(root)),
        command=command,
    )


def _capabilities(status: str) -> int:
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return int(value, 16)
    return 0


def _native_missing() -> tuple[str, ...]:
    absent = [] if _is_installed("pacto_agent") else ["the command `pacto agent`"]
    return (*absent, *(name for name in NATIVE_MODULES if not _is_installed(name)))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def require(facts: Facts) -> None:
    """Raise DemoImpossible with everything that is missing."""
    if found := missing(facts):
        raise DemoImpossible(problems="\n".join(map(str, found)))
