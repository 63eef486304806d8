# SPDX-License-Identifier: MIT
"""What an agent does when it is told to stop: its last view without a heartbeat, in bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent import agent as module
from tests.unit.agent.made import sums
from tests.unit.agent.test_agent import Bench


class Running:
    """An agent in a thread, that has published once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, publishes: bool = True) -> None:
        self.bench = Bench(monkeypatch)
        self.stop = self.bench.agent._stop
        self.thread = threading.Thread(target=self.bench.agent.run, daemon=True)
        if not publishes:
            self.bench.mapper.meanwhile = self.stop.set  # told to stop while it reads its first baseline
        self.thread.start()
        while publishes and not self.bench.sink.renewals:
            time.sleep(0.001)

    def end(self) -> float:
        """Tell it to stop; how long that took in seconds."""
        began = time.monotonic()
        self.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return time.monotonic() - began


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """An agent whose publish interval is far from over."""
    made = Running(monkeypatch)
    yield made
    made.end()


def test_what_was_seen_since_the_last_publish_is_written_without_a_heartbeat(running: Running) -> None:
    sink = running.bench.sink
    running.bench.tracer.sums = [sums(failed=2, at=time.time())]
    running.end()
    assert (sink.writes, sink.renewals) == (2, 1)
    assert sink.object is not None
    assert [peer.failed for peer in decode_node(sink.object).pods[0].peers] == [2]


def test_an_unchanged_view_is_not_written_again(running: Running) -> None:
    running.end()
    assert (running.bench.sink.writes, running.bench.sink.renewals) == (1, 1)


def test_an_agent_that_published_nothing_leaves_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    # its view has no baseline yet: the object of the agent before it says more
    running = Running(monkeypatch, publishes=False)
    running.end()
    assert (running.bench.sink.writes, running.bench.sink.renewals) == (0, 0)


def test_a_sink_that_hangs_delays_no_end(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()
    monkeypatch.setattr(module, "LAST_SECONDS", 0.2)
    monkeypatch.setattr(running.bench.sink, "put", lambda _: hanging.wait(10))
    running.bench.tracer.sums = [sums(failed=2, at=time.time())]
    assert 0.2 <= running.end() < 2
    hanging.set()


def test_the_bound_is_well_within_what_a_pod_has_to_end() -> None:
    assert module.LAST_SECONDS <= 3


def test_a_sink_that_refuses_is_said_and_the_end_is_a_good_one(
    running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: dict[str, Any]) -> None:
        raise SinkFailed(sink="test", problem="refused")

    monkeypatch.setattr(running.bench.sink, "put", refuse)
    running.bench.tracer.sums = [sums(failed=2, at=time.time())]
    running.end()
    assert capsys.readouterr().err == "pacto agent: test: refused\n"


def test_a_reader_that_ended_first_is_no_traceback(
    running: Running, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_observation: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(running.bench.sink, "put", gone)
    running.bench.tracer.sums = [sums(failed=2, at=time.time())]
    running.end()
    assert capfd.readouterr().err == ""
