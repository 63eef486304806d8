# SPDX-License-Identifier: MIT
"""What a failed load means, in words to act on: each cause that was seen on a real kernel."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pacto_agent import limits
from pacto_agent.limits import CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, Facts, explain_load, lockdown_mode

BOTH = 1 << CAP_BPF | 1 << CAP_PERFMON
FACTS = Facts(capabilities=BOTH, seccomp=False, memlock=8 << 20, kernel=(6, 1), lockdown="none")
PROBE = (
    "libbpf: Error in bpf_object__probe_loading():Operation not permitted(1). Couldn't load trivial BPF "
    "program. Make sure your kernel supports BPF (CONFIG_BPF_SYSCALL=y) and/or that RLIMIT_MEMLOCK is set "
    "to big enough value.\nlibbpf: failed to load object 'pacto_flow'\n"
)
AS_ROOT = (
    "libbpf: prog 'on_state': BPF program load failed: Operation not permitted\n"
    "libbpf: permission error while running as root; try raising 'ulimit -l'? current value: 8.0 MiB\n"
)
RING = "libbpf: map 'ring': failed to create: Operation not permitted(-1)\n"
OLD = replace(FACTS, kernel=(5, 10), memlock=64 << 10)
CASES = {
    "no PERFMON, with libbpf's misleading advice": (
        errno.EPERM,
        AS_ROOT,
        replace(FACTS, capabilities=1 << CAP_BPF),
        "without the capability PERFMON:",
    ),
    "no BPF": (
        errno.EPERM,
        PROBE,
        replace(FACTS, capabilities=1 << CAP_PERFMON),
        "without the capability BPF:",
    ),
    "neither": (
        errno.EPERM,
        PROBE,
        replace(FACTS, capabilities=0),
        "without the capability BPF and PERFMON:",
    ),
    "neither, unprivileged BPF allowed": (
        errno.EPERM,
        RING,
        replace(FACTS, capabilities=0),
        "without the capability BPF and PERFMON:",
    ),
    "memlock before 5.11": (errno.EPERM, RING, OLD, "memlock: the memlock limit of 64 KiB is below 768 KiB"),
    "memlock with SYS_ADMIN": (
        errno.EPERM,
        RING,
        replace(OLD, capabilities=1 << CAP_SYS_ADMIN),
        "memlock: ",
    ),
    "seccomp": (errno.EPERM, PROBE, replace(FACTS, seccomp=True), "seccomp: "),
    "no BTF": (
        errno.ESRCH,
        "libbpf: failed to find valid kernel BTF\nlibbpf: Error loading vmlinux BTF: -3\n",
        FACTS,
        "the kernel has no usable type information (BTF): libbpf: Error loading vmlinux BTF: -3",
    ),
    "types that a newer kernel brought": (
        errno.ESRCH,
        "libbpf: Unsupported BTF_KIND:20\nlibbpf: failed to find valid kernel BTF\n"
        "libbpf: Error loading vmlinux BTF: -3\n",
        FACTS,
        "the bundled libbpf does not understand this kernel's type information (Unsupported BTF_KIND:20): "
        "update the agent",
    ),
    "types that this libbpf checks and does not know": (
        errno.ESRCH,
        "libbpf: btf: type [7]: unrecognized kind 21\nlibbpf: failed to find valid kernel BTF\n",
        FACTS,
        "the bundled libbpf does not understand this kernel's type information (unrecognized kind 21)",
    ),
    "a probe read under lockdown": (
        errno.EINVAL,
        "libbpf: prog 'on_state': -- BEGIN PROG LOAD LOG --\n0: (bf) r6 = r1\n"
        "program of this type cannot use helper bpf_probe_read#4\nprocessed 9 insns (limit 1000000)\n"
        "-- END PROG LOAD LOG --\nlibbpf: failed to load object 'pacto_flow'\n",
        replace(FACTS, lockdown="confidentiality"),
        "refused under lockdown=confidentiality: program of this type cannot use helper bpf_probe_read#4",
    ),
    "a helper newer than the kernel": (
        errno.EINVAL,
        "libbpf: prog 'on_state': -- BEGIN PROG LOAD LOG --\ninvalid func unknown#162\nprocessed 5 insns\n"
        "-- END PROG LOAD LOG --\n",
        FACTS,
        "Invalid argument: invalid func unknown#162",
    ),
    "no memory": (errno.ENOMEM, "libbpf: map 'flows': failed to create\n", FACTS, "Cannot allocate memory: "),
    "no words at all": (errno.EPERM, "", FACTS, "Operation not permitted"),
}


@pytest.mark.parametrize(
    ("number", "log", "facts", "told"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_a_failed_load_is_explained(number: int, log: str, facts: Facts, told: str) -> None:
    assert explain_load(number, log, facts).startswith(told)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("no PERF", "memlock", "sec"))])
def test_a_remedy_is_named(name: str) -> None:
    number, log, facts, _ = CASES[name]
    told = explain_load(number, log, facts)
    assert any(word in told for word in ("securityContext", "nodeAgent.")), told
    assert "ulimit" not in told


@pytest.mark.parametrize(("in_pod", "sudo"), [(True, False), (False, True)])
def test_who_runs_it_by_hand_is_told_to_be_root(in_pod: bool, sudo: bool) -> None:
    told = explain_load(errno.EPERM, PROBE, replace(FACTS, capabilities=0, in_pod=in_pod))
    assert ("run it as root (sudo)" in told) == sudo
    assert "add BPF and PERFMON to the container's securityContext" in told


def test_a_pod_is_told_by_what_every_pod_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert not limits.read_facts().in_pod
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert limits.read_facts().in_pod


def test_enough_memlock_is_not_blamed() -> None:
    for memlock in (-1, limits.MEMLOCK_BYTES, 8 << 20):
        told = explain_load(errno.EPERM, RING, replace(OLD, memlock=memlock))
        assert "memlock" not in told


def test_memlock_is_no_cause_since_the_memory_cgroup_pays() -> None:
    assert "memlock" not in explain_load(errno.EPERM, RING, replace(OLD, kernel=(5, 11)))


def test_a_long_line_is_cut_and_the_lines_before_it_counted() -> None:
    told = explain_load(errno.EINVAL, "one\ntwo\n" + "x" * 1000, FACTS)
    assert len(told) < 400
    assert told.endswith("(and 2 lines before)")


@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        (BOTH, []),
        (1 << CAP_BPF, ["PERFMON"]),
        (1 << CAP_PERFMON, ["BPF"]),
        (0, ["BPF", "PERFMON"]),
        (1 << CAP_SYS_ADMIN, []),
    ],
)
def test_sys_admin_stands_for_both(capabilities: int, missing: list[str]) -> None:
    assert replace(FACTS, capabilities=capabilities).missing() == missing


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("[none] integrity confidentiality\n", "none"),
        ("none [integrity] confidentiality\n", "integrity"),
        ("none integrity [confidentiality]\n", "confidentiality"),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_the_lockdown_mode_is_the_word_in_brackets(tmp_path: Path, text: str, mode: str) -> None:
    path = tmp_path / "lockdown"
    path.write_text(text)
    assert lockdown_mode(str(path)) == mode


def test_a_kernel_without_lockdown_has_no_mode(tmp_path: Path) -> None:
    assert lockdown_mode(str(tmp_path / "absent")) == ""


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("6.18.44-fc-v669", (6, 18)),
        ("5.10.0-28-amd64", (5, 10)),
        ("6.12+", (6, 12)),
        ("6.1_custom", (6, 1)),
        ("unknown", (0, 0)),
    ],
)
def test_a_release_of_any_spelling_has_a_version(
    monkeypatch: pytest.MonkeyPatch, release: str, version: tuple[int, int]
) -> None:
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*real[:2], release, *real[3:])))
    assert limits.read_facts().kernel == version
