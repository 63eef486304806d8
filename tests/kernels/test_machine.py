# SPDX-License-Identifier: MIT
"""A command under another kernel: status, output, switches; and what is not fetched twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.layout import REPOSITORY, ClusterError
from tests.images import base
from tests.kernels import arm64, debian, machine
from tests.kernels.machine import Machine
from tests.support.require import require

pytestmark = pytest.mark.kernels


@pytest.fixture(scope="module")
def root() -> Path:
    """Debian's root without the project."""
    require("kernels", machine.missing())
    return base.BASE.directory()


def test_status_and_output_come_back(root: Path) -> None:
    """Through the command line, as a person would."""
    script = 'uname -r; echo "two words"; echo to stderr >&2; exit 7'
    command = [sys.executable, "-m", "tests.kernels", "run", "--suite", "bullseye", "--root", str(root), "--"]
    done = subprocess.run(
        [*command, "sh", "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    release, *rest = done.stdout.splitlines()
    assert release.startswith("5.10.")
    assert rest == ["two words", "to stderr"]


def test_switches_reach_the_kernel_and_files_reach_the_root(root: Path, tmp_path: Path) -> None:
    """No type information, lockdown, an added file; and the root itself stays as it was."""
    (tmp_path / "note").write_text("hello\n")
    command = "cat /src/note /sys/kernel/security/lockdown; ls /sys/kernel/btf/vmlinux; touch /etc/written"
    made = Machine(
        "bookworm", root, btf=False, lockdown="confidentiality", add={"/src/note": tmp_path / "note"}
    )
    result = machine.run(made, ["sh", "-c", command])
    assert result.output.startswith("hello\n")
    assert "[confidentiality]" in result.output
    assert "No such file" in result.output
    assert not (root / "etc/written").exists()


def test_a_command_that_does_not_end_is_reported_with_its_output(root: Path) -> None:
    """The limit ends the emulator."""
    # on a machine that does other things it may not have come to the command by then
    for limit in (12, 40, 120):
        with pytest.raises(ClusterError, match=f"limit {limit} s") as caught:
            machine.run(Machine("bullseye", root, timeout=limit), ["sh", "-c", "echo still here; sleep 600"])
        if "still here" in str(caught.value):
            break
    assert "still here" in str(caught.value)


def test_a_machine_of_arm64_has_its_own_emulator_and_consoles(tmp_path: Path) -> None:
    """Kernel messages and output stay apart, though the board has one serial line."""
    made = Machine("bookworm", tmp_path, architecture="arm64")
    words = machine.qemu(made, debian.Kernel(tmp_path), tmp_path / "disk", tmp_path / "i", tmp_path / "c")
    assert words[:3] == ["qemu-system-aarch64", "-machine", "virt"]
    assert "pci-serial,chardev=output" in words
    assert words[-1].startswith("console=ttyAMA0 ")
    assert machine.CONSOLES["arm64"] == ("ttyAMA0", "ttyS0")
    with pytest.raises(ClusterError, match="no kernel for 'mips' here; for: amd64, arm64"):
        debian.kernel("bookworm", "mips")


def test_a_release_without_a_wheel_of_arm64_is_told(tmp_path: Path) -> None:
    """With how to get one."""
    with pytest.raises(ClusterError, match=r"no wheel of arm64 in \S+ \(make release-dry-run\)"):
        arm64.wheel(tmp_path)


def test_modules_come_after_what_they_depend_on(tmp_path: Path) -> None:
    """Dependencies are read from the modules; what is built in is left out."""
    for name, depends in {"a": "b,built_in", "b": "c-c", "c-c": ""}.items():
        (tmp_path / name).write_bytes(b"\0depends=" + depends.encode() + b"\0")
    named = {name.replace("-", "_"): tmp_path / name for name in ("a", "b", "c-c")}
    assert list(debian.ordered(["a"], named, {"built_in"})) == ["c_c", "b", "a"]
    with pytest.raises(ClusterError, match="no module d"):
        debian.ordered(["d"], named, set())
