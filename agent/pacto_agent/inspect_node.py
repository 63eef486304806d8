# SPDX-License-Identifier: MIT
"""`pacto agent inspect`: what will work on this node, and why not. Changes nothing, loads nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from kubectl_pacto.errors import PactoError
from pacto_agent import limits
from pacto_agent.config import Options
from pacto_agent.libbpf import load_libbpf
from pacto_agent.objectfile import FLOW, ITERATORS, Shape, inspect_object, packaged_image
from pacto_agent.podscan import find_tree, pod_uids

OLDEST_KERNEL: Final = (5, 8)
MEMCG_KERNEL: Final = (5, 11)
OK, WARNING, ERROR = "ok", "warning", "error"


@dataclass(frozen=True, slots=True)
class Check:
    """One fact about this node: `result` is ok, warning or error; `hint` says what to do."""

    id: str
    result: str
    detail: str
    hint: str = ""


def inspect_node(options: Options) -> list[Check]:
    """All checks; none stops another."""
    facts = limits.read_facts()
    return [
        _kernel(facts),
        _btf(options.btf),
        *_native(),
        _capabilities(facts),
        _mapper(facts),
        _cgroups(options.cgroup_root),
        _processes(options.proc),
        _memlock(facts),
        _lockdown(facts),
        _apparmor(options.proc),
        Check("seccomp", OK, "a filter is on" if facts.seccomp else "no filter"),
    ]


def _kernel(facts: limits.Facts) -> Check:
    release = os.uname().release
    if facts.kernel < OLDEST_KERNEL:
        return Check("kernel", ERROR, release, "the agent needs Linux 5.8 or later")
    return Check("kernel", OK, release)


def _btf(path: str) -> Check:
    if os.path.exists(path):
        return Check("btf", OK, path)
    return Check("btf", ERROR, f"{path} is missing", "use a kernel built with CONFIG_DEBUG_INFO_BTF=y")


def _native() -> Iterator[Check]:
    yield _attempt("libbpf", _libbpf_version)
    for shape in (FLOW, ITERATORS):
        yield _attempt(f"object {shape.name}", partial(_object, shape))


def _libbpf_version() -> str:
    bpf = load_libbpf()
    return f"libbpf {bpf.ffi.string(bpf.lib.libbpf_version_string()).decode()}, linked statically"


def _object(shape: Shape) -> str:
    found = inspect_object(packaged_image(shape), shape=shape)
    maps = f", maps {' '.join(found.maps)}" if found.maps else ""
    records = " ".join(f"{name}={found.records[name].size}B" for name in shape.records)
    return f"{' '.join(found.programs)}{maps}, records {records}, licence {found.licence}"


def _attempt(name: str, step: Callable[[], str]) -> Check:
    try:
        return Check(name, OK, step())
    except PactoError as error:
        return Check(
            name, ERROR, str(error), "install the Linux wheel, or rebuild both parts from one source"
        )


def _capabilities(facts: limits.Facts) -> Check:
    if missing := facts.missing():
        detail = f"without {' and '.join(missing)}"
        return Check("capabilities", ERROR, detail, limits.grant(missing, facts))
    return Check("capabilities", OK, "BPF and PERFMON are held")


def _mapper(facts: limits.Facts) -> Check:
    if facts.kernel >= limits.ITERATOR_KERNEL:
        return Check("mapper", OK, "iter: the kernel has task and task_file iterators")
    if facts.has(limits.CAP_SYS_PTRACE):
        return Check("mapper", OK, "proc: this kernel has no task_file iterator (5.11)")
    return Check(
        "mapper", ERROR, "proc without SYS_PTRACE cannot read ns/net", limits.grant(["SYS_PTRACE"], facts)
    )


def _cgroups(root: str) -> Check:
    tree = find_tree(root)
    if not tree.found:
        return Check("cgroups", ERROR, f"no cgroup hierarchy in {root}", "mount the host's /sys/fs/cgroup")
    pods = len(pod_uids(tree))
    detail = f"{tree.mode} at {root}, {pods} pods"
    if not pods:
        hint = "no pod runs here; or, in a pod, the host's /sys/fs/cgroup is to be mounted read-only"
        return Check("cgroups", WARNING, detail, hint)
    return Check("cgroups", OK, detail)


def _processes(proc: str) -> Check:
    try:
        count = sum(name.isdigit() for name in os.listdir(proc))
    except OSError as error:
        return Check("processes", ERROR, f"{proc}: {error.strerror}", "mount the host's /proc")
    if count < 8:
        return Check("processes", WARNING, f"{count} in {proc}", "in a pod, set hostPID: true")
    return Check("processes", OK, f"{count} in {proc}")


def _memlock(facts: limits.Facts) -> Check:
    limit = "unlimited" if facts.memlock < 0 else f"{facts.memlock >> 10} KiB"
    if facts.has(limits.CAP_SYS_RESOURCE):
        return Check("memlock", OK, f"{limit}, and SYS_RESOURCE may raise it")
    if facts.kernel < MEMCG_KERNEL and 0 <= facts.memlock < limits.MEMLOCK_BYTES:
        return Check(
            "memlock", ERROR, limit, f"{limits.MEMLOCK_BYTES >> 10} KiB needed: nodeAgent.sysResource"
        )
    return Check("memlock", OK, limit)


def _lockdown(facts: limits.Facts) -> Check:
    mode = facts.lockdown or "not in this kernel"
    if facts.lockdown == "confidentiality" and facts.kernel < (5, 15):
        return Check("lockdown", WARNING, mode, "sockets are named by network namespace alone")
    return Check("lockdown", OK, mode)


def _apparmor(proc: str) -> Check:
    try:
        with open(f"{proc}/self/attr/current", encoding="ascii", errors="replace") as file:
            profile = file.read().strip("\0\n ")
    except OSError:
        profile = ""
    if profile and profile != "unconfined":
        return Check("apparmor", WARNING, profile, "the default profile denies ns/net: set it to Unconfined")
    return Check("apparmor", OK, profile or "off")


def render(checks: list[Check], *, as_json: bool) -> str:
    """The checks for people, or as a JSON list."""
    if as_json:
        return json.dumps([asdict(check) for check in checks], indent=2)
    width = max(len(check.id) for check in checks)
    rows = []
    for check in checks:
        rows.append(f"{check.result:8} {check.id:{width}}  {check.detail}")
        if check.hint:
            rows.append(f"{'':8} {'':{width}}  -> {check.hint}")
    return "\n".join(rows)
