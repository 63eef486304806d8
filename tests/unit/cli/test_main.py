# SPDX-License-Identifier: MIT
"""The front door: help, version, lazy commands, and what becomes of errors."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from kubectl_pacto import __version__
from kubectl_pacto.cli import main as front
from kubectl_pacto.errors import KernelWithoutBTF, PactoError


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main([]) == 0
    said = capsys.readouterr().out
    assert "Usage: kubectl pacto" in said
    assert all(name in said for name in front.COMMANDS)


def test_help_imports_no_command() -> None:
    script = (
        "import sys; from kubectl_pacto.cli.main import main; main(['--help']); "
        "print([name for name in sys.modules if name.endswith('_cmd') or name in ('yaml', 'jsonschema')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_fast() -> None:
    lines = (
        "import sys",
        "from kubectl_pacto.cli.main import main",
        "main(['--version'])",
        "print('click' in sys.modules)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "; ".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [f"kubectl pacto {__version__}", "False"]


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["frobnicate"]) == 2
    assert "No such command 'frobnicate'" in capsys.readouterr().err


class _Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def make_context(self, *_: object, **__: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (PactoError("went wrong"), 1, "error: went wrong\n"),
        (
            KernelWithoutBTF(path="/sys/x"),
            1,
            "error: No type information (BTF) at /sys/x: the node agent cannot load on this kernel. "
            "Use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as current distributions ship it.\n",
        ),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (click.UsageError("so not"), 2, "Error: so not\n"),
    ],
)
def test_what_goes_wrong_is_said_once(
    error: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(front, "build_group", lambda: _Raises(error))
    assert front.main(["evaluate"]) == status
    assert capsys.readouterr().err == said
