# SPDX-License-Identifier: MIT
"""A signal that comes while the main thread holds the lock of the very event that it sets."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import pytest

from kubectl_pacto.controller import run as operator
from pacto_agent import run as agent
from pacto_agent.config import parse

ENDS = (signal.SIGTERM, signal.SIGINT)


class Strict:
    """A lock that fails where a plain one would wait for ever: the thread that asks for it holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        assert not (blocking and self._holder == threading.get_ident()), "it waits for itself for ever"
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            self._holder = threading.get_ident()
        return taken

    def release(self) -> None:
        self._holder = 0
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def interrupted_within(stop: threading.Event, number: signal.Signals) -> None:
    """As `stop.wait()`, with the signal between the moment it takes its lock and the moment it sleeps."""
    stop._cond = threading.Condition(Strict())  # type: ignore[attr-defined, arg-type]
    with stop._cond:  # type: ignore[attr-defined]
        signal.raise_signal(number)
        signal.raise_signal(number)  # whoever is impatient sends two
    assert stop.wait(10)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDS)
def test_an_operator_is_told_to_stop_whatever_it_is_doing(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_told: object, stop: threading.Event) -> int:
        interrupted_within(stop, number)
        return 0

    monkeypatch.setattr(operator, "run", run)
    monkeypatch.setenv("POD_NAMESPACE", "ns")
    assert operator.main([]) == 0


class Interrupted:
    """An agent to which the signal comes."""

    number: signal.Signals

    def __init__(self, _options: object, _sink: object, stop: threading.Event) -> None:
        self._stop = stop

    def open(self) -> None:
        """As Agent."""

    def run(self) -> None:
        """As Agent."""
        interrupted_within(self._stop, self.number)

    def close(self) -> None:
        """As Agent."""


@pytest.mark.parametrize("number", ENDS)
def test_an_agent_is_told_to_stop_whatever_it_is_doing(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(Interrupted, "number", number, raising=False)
    monkeypatch.setattr("pacto_agent.agent.Agent", Interrupted)
    assert agent.run(parse(["--sink", "file", "--output", str(tmp_path / "out")])) == 0
