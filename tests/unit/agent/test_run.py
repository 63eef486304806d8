# SPDX-License-Identifier: MIT
"""`pacto agent` as it is called: what it says before it watches, and errors of one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from kubectl_pacto.errors import UsageError
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


class Waiting:
    """An agent that does nothing until it is told to stop."""

    def __init__(self, _options: Options, _sink: object, stop: threading.Event) -> None:
        self.stop = stop
        self.closed = False

    def open(self) -> None:
        """As Agent."""

    def run(self) -> None:
        """As Agent, except that it ends in the end."""
        assert self.stop.wait(10)

    def close(self) -> None:
        """As Agent."""
        self.closed = True


@pytest.mark.parametrize("arguments", [["--sink", "stdout"], ["top"]])
def test_an_agent_ends_as_soon_as_nobody_reads_it(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made: list[Waiting] = []

    def make(*given: Any) -> Waiting:
        made.append(Waiting(*given))
        return made[0]

    monkeypatch.setattr("pacto_agent.agent.Agent", make)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        threading.Timer(0.1, os.close, [reading]).start()
        with pytest.raises(BrokenPipeError):
            run.main(arguments)
    assert [one.closed for one in made] == [True]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["--sink", "stdout"], ["top"]])
def test_an_agent_needs_somewhere_to_tell_it(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UsageError, match="standard output is closed"):
        run.main(arguments)
