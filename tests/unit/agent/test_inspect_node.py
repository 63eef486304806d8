# SPDX-License-Identifier: MIT
"""What `pacto agent inspect` says of a node, from trees made for the test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pacto_agent import inspect_node, limits
from pacto_agent.config import Options
from pacto_agent.inspect_node import ERROR, OK, WARNING, Check, render

GOOD = limits.Facts(
    capabilities=(1 << 41) - 1, seccomp=False, memlock=8 << 20, kernel=(6, 8), lockdown="none"
)


def check_of(name: str, options: Options) -> Check:
    (found,) = [check for check in inspect_node.inspect_node(options) if check.id == name]
    return found


def facts(monkeypatch: pytest.MonkeyPatch, found: limits.Facts) -> None:
    monkeypatch.setattr(limits, "read_facts", lambda: found)


def test_missing_type_information_names_the_kernel_option(tmp_path: Path) -> None:
    check = check_of("btf", Options("n", btf=str(tmp_path / "vmlinux")))
    assert check.result == ERROR
    assert "CONFIG_DEBUG_INFO_BTF" in check.hint


def test_missing_capabilities_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    facts(monkeypatch, limits.Facts(1 << limits.CAP_BPF, False, -1, (6, 8), ""))
    check = check_of("capabilities", Options("n"))
    assert (check.result, check.detail) == (ERROR, "without PERFMON")
    words = "add PERFMON to the container's securityContext"
    assert check.hint == f"run it as root (sudo), or in a pod {words}"
    facts(monkeypatch, limits.Facts(1 << limits.CAP_BPF, False, -1, (6, 8), "", in_pod=True))
    assert check_of("capabilities", Options("n")).hint == words


def test_the_old_memlock_limit_is_an_error_only_on_old_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    without = GOOD.capabilities & ~(1 << limits.CAP_SYS_RESOURCE)
    facts(monkeypatch, limits.Facts(without, False, 65536, (5, 10), ""))
    assert check_of("memlock", Options("n")).result == ERROR
    facts(monkeypatch, limits.Facts(without, False, 65536, (6, 1), ""))
    assert check_of("memlock", Options("n")).result == OK


def test_who_may_raise_the_memlock_limit_is_told_so_and_not_that_it_is_too_low(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts(monkeypatch, limits.Facts(GOOD.capabilities, False, 65536, (5, 10), ""))
    check = check_of("memlock", Options("n"))
    assert (check.result, check.detail) == (OK, "64 KiB, and SYS_RESOURCE may raise it")


def test_the_memlock_limit_that_counts_is_the_one_it_may_be_raised_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1 << 16, 1 << 23))
    assert limits.read_facts().memlock == 1 << 23


def test_an_old_kernel_without_ptrace_cannot_map(monkeypatch: pytest.MonkeyPatch) -> None:
    without = GOOD.capabilities & ~(1 << limits.CAP_SYS_PTRACE)
    facts(monkeypatch, limits.Facts(without, False, -1, (5, 10), ""))
    assert check_of("mapper", Options("n")).result == ERROR
    facts(monkeypatch, limits.Facts(without, False, -1, (5, 15), ""))
    assert check_of("mapper", Options("n")).result == OK


def test_a_private_cgroup_mount_is_a_warning_that_says_what_to_mount(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    check = check_of("cgroups", Options("n", cgroup_root=str(tmp_path)))
    assert check.result == WARNING
    assert "read-only" in check.hint
    assert "no pod runs here" in check.hint
    (tmp_path / "kubepods" / "pod11111111-1111-4111-8111-111111111111").mkdir(parents=True)
    assert check_of("cgroups", Options("n", cgroup_root=str(tmp_path))).result == OK


def test_a_root_without_cgroups_is_an_error(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "absent"):
        check = check_of("cgroups", Options("n", cgroup_root=str(root)))
        assert check.result == ERROR
        assert str(root) in check.detail


def test_too_few_processes_point_to_the_pid_namespace(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    assert "hostPID" in check_of("processes", Options("n", proc=str(tmp_path))).hint


def test_an_apparmor_profile_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "self" / "attr").mkdir(parents=True)
    (tmp_path / "self" / "attr" / "current").write_text("cri-containerd.apparmor.d (enforce)\n")
    check = check_of("apparmor", Options("n", proc=str(tmp_path)))
    assert (check.result, check.detail) == (WARNING, "cri-containerd.apparmor.d (enforce)")


def test_json_holds_every_check_and_tables_their_hints() -> None:
    checks = [Check("one", OK, "fine"), Check("two", ERROR, "broken", "mend it")]
    assert json.loads(render(checks, as_json=True))[1] == {
        "id": "two", "result": "error", "detail": "broken", "hint": "mend it",
    }  # fmt: skip
    assert render(checks, as_json=False).splitlines() == [
        "ok       one  fine",
        "error    two  broken",
        "              -> mend it",
    ]
