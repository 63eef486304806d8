# SPDX-License-Identifier: MIT
"""`pacto agent` as it is called: what it says before it watches, and errors of one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pacto_agent import run
from pacto_agent.config import Options


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that an agent was started with; none runs."""
    seen: list[Options] = []

    def start(options: Options) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(run, "run", start)
    return seen


def test_a_call_without_arguments_says_what_it_does_and_what_else_there_is(
    asked: list[Options], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([]) == 0
    out, said = capsys.readouterr()
    assert out == "", "standard output is the sink's"
    assert said.count("\n") == 1
    for words in ("pacto agent: watching", "standard output", "--sink kubernetes", "--sink file --output"):
        assert words in said
    assert [one.sink for one in asked] == ["stdout"]


def test_a_call_that_names_its_sink_is_quiet(
    asked: list[Options], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["--sink", "stdout"]) == 0
    assert capsys.readouterr() == ("", "")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--sink", "file"], 2, "pacto agent: --sink file needs --output PATH\n"),
        (["--sink", "kubernetes"], 1, "pacto agent: GET /: the API server cannot be reached: KUBERNETES_"),
        (["top", "--proc", "/no/such"], 2, "pacto agent: --proc '/no/such' is no directory: "),
        (["inspect", "-o", "xml"], 2, "pacto agent inspect: -o: invalid choice: 'xml' (choose from "),
    ],
)
def test_the_module_ends_as_the_command_does(arguments: list[str], status: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pacto_agent", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
