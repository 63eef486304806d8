# SPDX-License-Identifier: MIT
"""`pacto`: commands by entry point, each error one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import pytest

from kubectl_pacto import __version__, launcher
from kubectl_pacto.errors import UsageError

Body = Callable[[list[str]], int | None]
Offer = Callable[[Body], None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Offers a function as the one command, `one`."""

    def as_one(body: Body) -> None:
        module = ModuleType("offered")
        module.main = body  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "offered", module)
        monkeypatch.setattr(launcher, "commands", lambda: {"one": "offered:main"})

    return as_one


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert launcher.main(["--help"]) == launcher.main([]) == launcher.main(["-h"]) == 0
    assert "agent" in capsys.readouterr().out


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert launcher.main(["--version"]) == 0
    assert capsys.readouterr().out == f"pacto {__version__}\n"


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert launcher.main(["agnet"]) == 2
    assert "unknown command 'agnet'" in capsys.readouterr().err


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (3, 3)])
def test_a_command_gets_its_arguments_and_gives_its_status(
    offer: Offer, returned: int | None, status: int
) -> None:
    seen: list[list[str]] = []

    def body(arguments: list[str]) -> int | None:
        seen.append(arguments)
        return returned

    offer(body)
    assert launcher.main(["one", "--a", "b"]) == status
    assert seen == [["--a", "b"]]


def test_an_error_of_ours_is_one_line(offer: Offer, capsys: pytest.CaptureFixture[str]) -> None:
    def body(_arguments: list[str]) -> int:
        raise UsageError("no such sink")

    offer(body)
    assert launcher.main(["one"]) == 2
    assert capsys.readouterr().err == "pacto one: no such sink\n"


def test_an_interrupt_has_its_own_status(offer: Offer) -> None:
    def body(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    offer(body)
    assert launcher.main(["one"]) == 130


def piped(program: str, *, stdout: str = "") -> subprocess.CompletedProcess[str]:
    """Run a Python program whose output nobody reads, or that is written to the file `stdout`."""
    reading, writing = os.pipe()
    os.close(reading)
    target = os.open(stdout, os.O_WRONLY) if stdout else writing
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    try:
        return subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            stdout=target,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        for one in {writing, target}:
            os.close(one)


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_command_whose_reader_has_gone_ends_quietly(size: int) -> None:
    body = f"sys.exit(launcher.guarded('pacto one', lambda: print('x' * {size}) or 0))"
    done = piped(f"import sys; from kubectl_pacto import launcher; {body}")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    "arguments", [["agent", "inspect"], ["operator", "--help"], ["--help"], ["--version"]]
)
def test_every_command_ends_quietly_when_nobody_reads_it(arguments: list[str]) -> None:
    done = piped(f"import sys; from kubectl_pacto import launcher; sys.exit(launcher.main({arguments!r}))")
    assert (done.returncode, done.stderr) == (141, "")


def test_an_output_that_cannot_be_written_is_said_in_one_line() -> None:
    body = "sys.exit(launcher.guarded('pacto one', lambda: print('x') or 0))"
    done = piped(f"import sys; from kubectl_pacto import launcher; {body}", stdout="/dev/full")
    assert (done.returncode, done.stderr) == (1, "pacto one: standard output: No space left on device\n")


@pytest.mark.parametrize("module", ["pacto_native.ring", "cffi", "elftools.elf"])
def test_absent_native_parts_are_named(offer: Offer, capsys: pytest.CaptureFixture[str], module: str) -> None:
    def body(_arguments: list[str]) -> int:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    offer(body)
    assert launcher.main(["one"]) == 1
    assert f"no native parts ({module})" in capsys.readouterr().err


def test_another_absent_module_is_a_fault_of_ours(offer: Offer) -> None:
    def body(_arguments: list[str]) -> int:
        raise ModuleNotFoundError("No module named 'x'", name="x")

    offer(body)
    with pytest.raises(ModuleNotFoundError):
        launcher.main(["one"])


def test_it_finds_what_the_standard_library_finds() -> None:
    there = {entry.name: entry.value for entry in entry_points(group=launcher.GROUP)}
    assert there.keys() >= {"agent", "operator"}
    assert launcher.commands() == there


def test_the_first_distribution_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, folder in enumerate(("first", "second")):
        metadata = tmp_path / folder / "theirs-1.0.dist-info"
        metadata.mkdir(parents=True)
        text = f"[console_scripts]\nthree = c:d\n\n[{launcher.GROUP}]\nextra = a{number}:main\n"
        (metadata / "entry_points.txt").write_text(text)
    monkeypatch.setattr(
        sys, "path", [str(tmp_path / name) for name in ("first", "absent", "second")] + sys.path
    )
    found = launcher.commands()
    assert found["extra"] == "a0:main"
    assert "agent" in found
    assert "three" not in found


def test_to_find_a_command_costs_no_import_but_its_own() -> None:
    program = "import sys, kubectl_pacto.launcher as one; one.commands(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"importlib.metadata", "email", "pacto_agent", "kubectl_pacto.controller"}
