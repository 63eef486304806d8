# SPDX-License-Identifier: MIT
"""The demo's life without a kernel: passes, the end, an error, a signal, and closing exactly then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubectl_pacto.cli.demo import run as module
from kubectl_pacto.cli.demo.objects import LivePod
from kubectl_pacto.cli.demo.report import render
from kubectl_pacto.cli.demo.run import Interrupted, Interrupts, run
from kubectl_pacto.errors import DemoFailed
from tests.unit.cli.demo.scene import node_objects, pods


class FakeNode:
    """A node that only has a view file; `trouble` happens when its pods are asked for."""

    def __init__(self, directory: Path, trouble: Callable[[], None] = lambda: None) -> None:
        self.view_file = directory / "node.json"
        self.trouble = trouble
        self.left: list[str] = []
        self.closed = 0

    def open(self, say: Callable[[str], None]) -> None:
        say("open")

    def check_agent(self) -> None:
        pass

    def pods(self) -> dict[str, LivePod]:
        self.trouble()
        return pods()

    def publish(self, **collection: str) -> None:
        items = node_objects(time.time())
        items[0]["collection"].update(collection)
        self.view_file.write_text(json.dumps({"items": items}))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _restored_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in module.SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in module.SIGNALS} == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    made = FakeNode(tmp_path)
    made.publish()
    monkeypatch.setattr(module, "Node", lambda *_: made)
    return made


def quiet(_line: str) -> None:
    pass


def test_a_verdict_that_does_not_come_ends_with_the_timeout(node: FakeNode) -> None:
    ended = run("/m", timeout=0, keep=None, say=quiet)
    assert ended.outcome is not None
    assert not ended.outcome.is_complete
    assert ended.is_clean
    assert node.closed == 1


def test_progress_is_told_once_per_change(node: FakeNode) -> None:
    said: list[str] = []
    run("/m", timeout=1.2, keep=None, say=said.append)
    assert sum("payments" in line for line in said) == 1


def test_an_agent_that_publishes_nothing_is_waited_for_no_longer_than_the_timeout(node: FakeNode) -> None:
    node.view_file.unlink()
    ended = run("/m", timeout=0.2, keep=None, say=quiet)
    assert ended.outcome is not None
    assert ended.outcome.judge.passes == 1
    assert "is not covered yet" in render(ended.outcome, "table")


@pytest.mark.parametrize("number", module.SIGNALS)
def test_a_signal_closes_the_node(node: FakeNode, number: signal.Signals) -> None:
    node.trouble = lambda: os.kill(os.getpid(), number)
    ended = run("/m", timeout=5, keep=None, say=quiet)
    assert (ended.outcome, ended.signal) == (None, number)
    assert node.closed >= 1


def test_a_signal_within_a_finalizer_is_not_lost(node: FakeNode) -> None:
    class Dropped:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)  # what the handler raises here, Python drops

    def drop() -> None:
        Dropped()

    node.trouble = drop
    ended = run("/m", timeout=60, keep=None, say=quiet)
    assert (ended.outcome, ended.signal) == (None, signal.SIGINT)
    assert node.closed >= 1


def test_a_signal_while_closing_changes_nothing(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def close() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        node.closed += 1

    monkeypatch.setattr(node, "close", close)
    ended = run("/m", timeout=0, keep=None, say=quiet)
    assert node.closed == 1
    assert ended.signal == signal.SIGINT


def test_a_signal_within_the_lock_of_a_childs_status_leaves_no_lock_behind(node: FakeNode) -> None:
    # a process whose lock stays taken can never be waited for
    child = subprocess.Popen(["sleep", "60"])
    lock = child._waitpid_lock  # type: ignore[attr-defined]

    class Signalling:
        def acquire(self, blocking: bool) -> bool:
            taken = lock.acquire(blocking)
            os.kill(os.getpid(), signal.SIGINT)
            return bool(taken)

        def release(self) -> None:
            lock.release()

    def look() -> None:
        child._waitpid_lock = Signalling()  # type: ignore[attr-defined]
        child.poll()

    node.trouble = look
    try:
        ended = run("/m", timeout=60, keep=None, say=quiet)
        assert (ended.outcome, ended.signal) == (None, signal.SIGINT)
        assert lock.acquire(blocking=False)
        lock.release()
    finally:
        child._waitpid_lock = lock  # type: ignore[attr-defined]
        child.kill()
        child.wait(10)


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    made = Interrupts()
    made.install()
    yield made
    made.close()


def test_only_the_first_signal_counts(interrupts: Interrupts) -> None:
    interrupts.check()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(2):
        with pytest.raises(Interrupted):
            interrupts.check()
    assert interrupts.number == signal.SIGTERM


def test_a_wait_ends_with_what_comes_first(interrupts: Interrupts) -> None:
    began = time.monotonic()
    assert not interrupts.wait(0.05)
    reading, writing = os.pipe()
    with os.fdopen(reading) as file, os.fdopen(writing, "w") as other:
        assert not interrupts.wait(0.0, file)
        other.write("here\n")
        other.flush()
        assert interrupts.wait(60, file)
        assert interrupts.wait(60, file)
        sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGHUP))
        sender.start()
        assert file.readline() == "here\n"
        with pytest.raises(Interrupted):
            interrupts.wait(60, file)
    assert time.monotonic() - began < 30
    sender.join()


def test_an_error_closes_the_node_and_goes_on(node: FakeNode) -> None:
    def fail() -> None:
        raise DemoFailed(problem="the process of pod audit ended (-9)")

    node.trouble = fail
    node.left = ["/sys/fs/cgroup/x: busy"]
    said: list[str] = []
    with pytest.raises(DemoFailed, match="pod audit ended"):
        run("/m", timeout=5, keep=None, say=said.append)
    assert node.closed == 1
    assert "could not remove /sys/fs/cgroup/x: busy" in said


def test_an_agent_that_cannot_collect_ends_the_demo_with_its_words(node: FakeNode) -> None:
    node.publish(state="Failed", reason="LoadFailed", message="without the capability BPF")
    with pytest.raises(DemoFailed, match="LoadFailed: without the capability BPF"):
        run("/m", timeout=5, keep=None, say=quiet)
    assert node.closed == 1


def test_kept_objects_can_be_read_again(node: FakeNode, tmp_path: Path) -> None:
    from kubectl_pacto.collect.objects import read_objects

    keep = tmp_path / "kept" / "here"
    run("/m", timeout=0, keep=keep, say=quiet)
    made = read_objects([str(keep)]).cluster()
    assert len(made.pactos) == len(made.pods) == 4
    assert len(made.nodes) == len(made.leases) == 1


def test_a_folder_that_cannot_be_written_is_named(node: FakeNode, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DemoFailed, match=r"--keep .*file/kept: Not a directory"):
        run("/m", timeout=0, keep=tmp_path / "file" / "kept", say=quiet)
