# SPDX-License-Identifier: MIT
"""What this process may do with BPF, and what a failed load means in words to act on."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOCKDOWN_PATH: Final = "/sys/kernel/security/lockdown"
MEMLOCK_BYTES: Final = 768 << 10  # what ring and maps are charged before 5.11, with room
ITERATOR_KERNEL: Final = (5, 11)  # the first with bpf_sock_from_file for iterators
CAP_SYS_PTRACE: Final = 19
CAP_PERFMON: Final = 38
CAP_BPF: Final = 39
CAP_SYS_ADMIN: Final = 21
CAP_SYS_RESOURCE: Final = 24
UNKNOWN_TYPE: Final = re.compile(r"Unsupported BTF_KIND:\d+|unrecognized kind \d+")  # libbpf's btf.c
NAMES: Final = {CAP_SYS_PTRACE: "SYS_PTRACE", CAP_PERFMON: "PERFMON", CAP_BPF: "BPF"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides whether BPF works here."""

    capabilities: int
    seccomp: bool
    memlock: int  # in bytes, what this process may raise it to; -1 unlimited
    kernel: tuple[int, int]
    lockdown: str  # none, integrity, confidentiality; empty where the kernel has none
    in_pod: bool = False

    def has(self, capability: int) -> bool:
        """Whether the effective set holds it (SYS_ADMIN stands for BPF and PERFMON)."""
        stands_in = capability in (CAP_BPF, CAP_PERFMON) and self.capabilities >> CAP_SYS_ADMIN & 1
        return bool(self.capabilities >> capability & 1 or stands_in)

    def missing(self) -> list[str]:
        """The names of BPF and PERFMON that are not held."""
        return [NAMES[one] for one in (CAP_BPF, CAP_PERFMON) if not self.has(one)]


def read_facts() -> Facts:
    """The facts of this process on this kernel."""
    status = _status()
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return Facts(
        capabilities=int(status.get("CapEff", "0"), 16),
        seccomp=status.get("Seccomp", "0") != "0",
        memlock=hard,
        kernel=(int(release[1]), int(release[2])) if release else (0, 0),
        lockdown=lockdown_mode(),
        in_pod="KUBERNETES_SERVICE_HOST" in os.environ,
    )


def _status() -> dict[str, str]:
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        pairs = (line.partition(":") for line in lines)
        return {name: value.strip() for name, _, value in pairs}


def lockdown_mode(path: str = LOCKDOWN_PATH) -> str:
    """The chosen word of "none [integrity] confidentiality", empty where there is no such file."""
    try:
        with open(path, encoding="ascii") as file:
            words = file.read().split()
    except OSError:
        return ""
    return next((word.strip("[]") for word in words if word.startswith("[")), "")


def lockdown_confidential() -> bool:
    """Whether probe reads of kernel memory are refused; unknown counts as possible."""
    return lockdown_mode() in ("confidentiality", "")


def raise_memlock() -> None:
    """Raise the soft limit to the hard one: libbpf only tries "unlimited", which may be refused."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))


def grant(missing: Sequence[str], facts: Facts) -> str:
    """How this process gets capabilities that it lacks: a person on a node has no container to change."""
    added = f"add {' and '.join(missing)} to the container's securityContext"
    return added if facts.in_pod else f"run it as root (sudo), or in a pod {added}"


def explain_load(number: int, log: str, facts: Facts) -> str:
    """Why the load failed with errno `number`, for a person; `log` is libbpf's text.

    EPERM has three causes that libbpf's text does not tell apart, so they are looked at.
    """
    last = _telling(log)
    if number == errno.ESRCH and (unknown := UNKNOWN_TYPE.search(log)):
        words = "the bundled libbpf does not understand this kernel's type information"
        return f"{words} ({unknown[0]}): update the agent"
    if number == errno.ESRCH:
        return f"the kernel has no usable type information (BTF): {last}"
    if number == errno.EPERM and (missing := facts.missing()):
        return f"without the capability {' and '.join(missing)}: {grant(missing, facts)}"
    if number == errno.EPERM and facts.kernel < (5, 11) and 0 <= facts.memlock < MEMLOCK_BYTES:
        limit = f"the memlock limit of {facts.memlock >> 10} KiB is below {MEMLOCK_BYTES >> 10} KiB"
        return f"memlock: {limit}, raise it or set nodeAgent.sysResource"
    if number == errno.EPERM and facts.seccomp:
        remedy = "set nodeAgent.seccompProfile to Unconfined, or update the container runtime"
        return f"seccomp: a filter refuses bpf(): {remedy}"
    if number == errno.EINVAL and facts.lockdown == "confidentiality":
        return f"refused under lockdown=confidentiality: {last}"
    return f"{os.strerror(number)}: {last}" if last else os.strerror(number)


def _telling(log: str) -> str:
    """The last line that says something, and how many there were before it.

    The verifier's own words tell more than libbpf's last line, which only says that it failed.
    """
    _, found, verifier = log.rpartition("-- BEGIN PROG LOAD LOG --")
    text = verifier.partition("-- END PROG LOAD LOG --")[0] if found else log
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("processed ")]
    if not lines:
        return ""
    more = f" (and {len(lines) - 1} lines before)" if len(lines) > 1 else ""
    return f"{lines[-1][:300]}{more}"
