# SPDX-License-Identifier: MIT
"""Both architectures of a release on one machine: what it lacks is said, what it set up is taken back."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts import release, release_machines, release_verify
from scripts.release_machines import Emulated, Here, ReleaseError
from tests.support.require import require, require_root
from tests.support.sources import ROOT

pytestmark = pytest.mark.packaging
DEBIANS = """enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: POF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
"""


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with all that emulation needs."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(release_machines, "BINFMT", Path("/"))


def without(*absent: str) -> Callable[[str], str | None]:
    """shutil.which of a machine that lacks these."""
    return lambda program: None if program in absent else f"/usr/bin/{program}"


def test_what_a_machine_lacks_is_said_with_its_remedy(able: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release_machines.lacking() == ""
    found = [
        (os, "geteuid", lambda: 1000, "needs root"),
        (shutil, "which", without("qemu-aarch64-static"), "apt-get install qemu-user-static"),
        (shutil, "which", without("mmdebstrap"), "apt-get install mmdebstrap"),
        (shutil, "which", without("arch-test"), "apt-get install arch-test"),
        (platform, "machine", lambda: "riscv64", "amd64 machines"),
        (sys, "platform", "darwin", "amd64 machines"),
    ]
    for module, name, value, words in found:
        with monkeypatch.context() as one:
            one.setattr(module, name, value)
            assert words in release_machines.lacking(), name


def test_a_kernel_without_emulators_is_told(able: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_machines, "BINFMT", Path("/nowhere"))
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "nodev\tproc\n")
    assert "modprobe binfmt_misc" in release_machines.lacking()


@pytest.mark.parametrize("more", [[], ["--only", "image"], ["--architecture", "arm64"]])
def test_no_architecture_is_left_out_silently(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line with the remedy and the option that leaves it out; nothing is built."""
    monkeypatch.setattr(release_machines, "lacking", lambda: "needs x (apt-get install y)")
    monkeypatch.setattr(release_machines.Here, "architecture", "amd64")
    assert release.main(["--output", str(tmp_path / "out"), *more]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "release: arm64 needs x (apt-get install y); --architecture amd64 builds that one alone"
    assert list((tmp_path / "out").iterdir()) == []


def test_one_architecture_or_a_part_without_any_asks_for_no_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_machines, "lacking", lambda: "needs what it must not need")
    asked: list[tuple[str, str]] = []

    def step(name: str) -> Callable[..., None]:
        return lambda _, machine=None: asked.append((name, machine.architecture if machine else ""))

    for name in release.MACHINE_STEPS:
        monkeypatch.setitem(release.MACHINE_STEPS, name, step(name))
    for name in release.STEPS:
        monkeypatch.setitem(release.STEPS, name, step(name))
    mine = Here().architecture
    assert release.main(["--output", str(tmp_path / "one"), "--architecture", mine]) == 0
    assert asked == [
        *(("wheels", mine), ("check", mine), ("image", mine)),
        *(("chart", ""), ("krew", ""), ("materials", mine)),
    ]
    asked.clear()
    assert release.main(["--output", str(tmp_path / "two"), "--only", "chart"]) == 0
    assert asked == [("chart", "")]


def entries(folder: Path, **texts: str) -> Path:
    """A folder as binfmt_misc shows itself."""
    folder.mkdir()
    for name, text in {"register": "", "status": "enabled\n", **texts}.items():
        (folder / name).write_text(text)
    return folder


def test_an_emulator_counts_that_is_on_and_reaches_into_roots(tmp_path: Path) -> None:
    assert release_machines.is_registered(entries(tmp_path / "a", debians=DEBIANS))
    spoiled = {
        "none": {},
        "off": {"debians": DEBIANS.replace("enabled", "disabled")},
        "not in roots": {"debians": DEBIANS.replace("POF", "PO")},
        "of another machine": {"debians": DEBIANS.replace("b700", "f300")},
        "of few files": {"debians": DEBIANS.replace("mask ffffffffffffff00", "mask ffffffffffffffff")},
    }
    for name, texts in spoiled.items():
        assert not release_machines.is_registered(entries(tmp_path / name, **texts)), name


def test_the_registration_says_what_debian_says() -> None:
    said = release_machines.registration("/usr/bin/emulator").encode().decode("unicode_escape")
    _, _, kind, offset, magic, mask, interpreter, flags = said.split(":")
    assert (kind, offset, interpreter, flags) == ("M", "", "/usr/bin/emulator", "F")
    for name, value in (("magic", magic), ("mask", mask)):
        assert f"{name} {value.encode('latin-1').hex()}\n" in DEBIANS


@pytest.fixture
def binfmt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel's table of emulators that is not mounted yet; unmounted, it says so in `unmounted`."""
    folder = tmp_path / "binfmt"

    def run(*command: Any) -> str:
        if command[0] == "mount":
            entries(folder)
        else:
            shutil.copytree(folder, tmp_path / "unmounted")
        return ""

    monkeypatch.setattr(release_machines, "BINFMT", folder)
    monkeypatch.setattr(release_machines, "run", run)
    return folder


@pytest.mark.parametrize("ends", [ReleaseError("x"), KeyboardInterrupt(), SystemExit(143), None])
def test_what_was_mounted_and_registered_is_taken_back_whatever_happens(
    ends: BaseException | None, binfmt: Path, tmp_path: Path
) -> None:
    wanted = pytest.raises(type(ends)) if ends else contextlib.nullcontext()
    with wanted, release_machines.emulation(tmp_path / "lock"):
        assert (binfmt / "register").read_text().startswith(":qemu-aarch64:M:")
        assert not (binfmt / "qemu-aarch64").exists()
        assert not (tmp_path / "unmounted").exists()
        if ends is not None:
            raise ends
    # -1 takes an entry out; it was written before the table was unmounted
    assert (tmp_path / "unmounted" / "qemu-aarch64").read_text() == "-1"


def test_what_others_registered_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = entries(tmp_path / "binfmt", debians=DEBIANS)
    monkeypatch.setattr(release_machines, "BINFMT", folder)
    monkeypatch.setattr(release_machines, "run", lambda *_: pytest.fail("mounts or unmounts"))
    with release_machines.emulation(tmp_path / "lock"):
        pass
    assert (folder / "debians").read_text() == DEBIANS
    assert (folder / "register").read_text() == ""


def test_an_emulator_of_others_that_reaches_into_no_root_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = entries(tmp_path / "binfmt", **{"qemu-aarch64": DEBIANS.replace("POF", "PO")})
    monkeypatch.setattr(release_machines, "BINFMT", folder)
    monkeypatch.setattr(release_machines, "run", lambda *_: pytest.fail("mounts or unmounts"))
    with (
        pytest.raises(ReleaseError, match=r"qemu-aarch64 is off, or opens .*echo -1 > "),
        release_machines.emulation(tmp_path / "lock"),
    ):
        pytest.fail("goes on")
    assert (folder / "register").read_text() == ""


def mounts() -> set[str]:
    """Where something is mounted, for this process."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def test_a_program_of_a_root_writes_to_what_is_shared_alone(tmp_path: Path) -> None:
    """Here the root is this machine's own, so that no emulator is needed."""
    require_root("packaging")
    require("packaging", "" if "overlay" in Path("/proc/filesystems").read_text() else "no overlay")
    machine, before = Emulated(Path("/"), (tmp_path,), platform.machine()), mounts()
    written = Path("/etc/pacto-was-written")
    script = (
        f'pwd; echo "$WORD"; touch {written}; touch {tmp_path}/kept; ls /proc/1/exe; readlink /proc/1/exe'
    )
    said = machine.run("sh", "-c", script, cwd=tmp_path, WORD="two words").splitlines()
    assert said[:2] == [str(tmp_path), "two words"]
    assert not written.exists()
    assert (tmp_path / "kept").exists()
    assert mounts() == before


def test_a_failing_program_of_a_root_is_named_with_what_it_said(tmp_path: Path) -> None:
    require_root("packaging")
    machine = Emulated(Path("/"), (tmp_path,))
    with pytest.raises(ReleaseError, match=r"(?s)^arm64: sh ended with status 3:.*no such thing"):
        machine.run("sh", "-c", "echo no such thing >&2; exit 3")


def test_a_run_that_is_interrupted_leaves_nothing_running(tmp_path: Path) -> None:
    """Also what it started inside, which ends with its namespace of processes."""
    require_root("packaging")
    inside = f"touch {tmp_path}/up; (exec sleep 4711); true"
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pathlib import Path; from scripts.release_machines import Emulated\n"
        f"Emulated(Path('/'), (Path('{tmp_path}'),)).run('sh', '-c', '{inside}')"
    )
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=quiet, start_new_session=True)
    try:
        while not (tmp_path / "up").exists():
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    end = time.monotonic() + 10
    while sleeps(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert not sleeps(tmp_path)


def sleeps(shared: Path) -> list[str]:
    """Processes whose mounts show this shared path in a root."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/mnt/root{shared} " in (process / "mountinfo").read_text():
                found.append((process / "comm").read_text().strip())
    return found


class Recorder:
    """A machine that starts nothing; a download leaves a file in its folder."""

    python, foreign = "python3", ""

    def __init__(self, architecture: str) -> None:
        self.architecture, self.asked = architecture, 0

    def run(self, *command: Any, **_: Any) -> str:
        words = [str(word) for word in command]
        if "download" in words:
            self.asked += 1
            Path(words[words.index("--dest") + 1], "click.whl").touch()
            assert {"build>=1.2", "click>=8.2", "pytest>=8.3", "pip"} <= set(words)
        return ""


def test_packages_are_fetched_once_for_each_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the machine itself, and after that no index is asked."""
    monkeypatch.setenv("PIP_NO_INDEX", "")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    machines: list[Any] = [Recorder("amd64"), Recorder("arm64")]
    place = release.Place(tmp_path / "out", tmp_path / "work")
    place.work.mkdir()
    for one in machines:
        (tmp_path / "kept" / one.architecture).mkdir(parents=True)
    for _ in range(2):
        release.use_cache(tmp_path / "kept", machines, place)
        assert [one.asked for one in machines] == [1, 1]
    assert os.environ["PIP_NO_INDEX"] == "1"
    assert os.environ["PIP_FIND_LINKS"].split() == [
        str(tmp_path / "kept" / "amd64"), str(tmp_path / "kept" / "arm64"),
    ]  # fmt: skip


def test_names_of_architectures_agree() -> None:
    machines = release_verify.MACHINES
    for kernel_name, architecture in release_machines.ARCHITECTURES.items():
        assert machines[kernel_name] == machines[architecture]
