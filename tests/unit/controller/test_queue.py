# SPDX-License-Identifier: MIT
"""The work queue: each key once, one worker per key, pauses of its own for each that fails."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from kubectl_pacto.controller.queue import FIRST_PAUSE, LONGEST_PAUSE, WorkQueue


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    return WorkQueue(clock=clock)


def keys(queue: WorkQueue[str]) -> list[str]:
    """All keys that are due."""
    found = []
    while taken := queue.take(0):
        found.append(taken.key)
    return found


def test_a_key_added_twice_comes_once(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert keys(queue) == ["a", "b"]


def test_a_key_that_is_worked_on_comes_again_only_after_that(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.take(0)
    queue.add("a")
    clock.now += 10
    assert keys(queue) == []
    queue.done("a")
    assert keys(queue) == ["a"]


def test_work_on_one_key_does_not_start_more_often_than_its_gap(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.take(0)
    queue.done("a")
    queue.add("a")
    assert keys(queue) == []
    clock.now += 0.2
    assert keys(queue) == ["a"]


def test_the_earlier_time_stands(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a", after=100)
    queue.add("a", after=5)
    queue.add("a", after=50)
    clock.now += 5
    assert keys(queue) == ["a"]
    queue.done("a")
    clock.now += 200
    assert keys(queue) == []


def test_a_key_comes_back_after_its_interval(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.take(0)
    queue.done("a", again=300)
    clock.now += 299
    assert keys(queue) == []
    clock.now += 1
    assert keys(queue) == ["a"]


def test_what_was_added_meanwhile_does_not_wait_for_the_interval(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.take(0)
    queue.add("a")
    queue.done("a", again=300)
    clock.now += 1
    assert keys(queue) == ["a"]


def test_pauses_double_up_to_a_bound_and_start_over_after_success(
    queue: WorkQueue[str], clock: Clock
) -> None:
    pauses = []
    queue.add("a")
    for _ in range(12):
        assert queue.take(0) is not None
        pauses.append(queue.failed("a"))
        clock.now += pauses[-1]
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert queue.take(0) is not None
    queue.done("a", again=0)
    clock.now += 1
    assert queue.take(0) is not None
    assert queue.failed("a") == FIRST_PAUSE


def test_depth_counts_what_is_due(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.add("b", after=10)
    assert queue.depth() == 1
    clock.now += 10
    assert queue.depth() == 2


def test_the_time_since_due_is_told(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    clock.now += 7
    taken = queue.take(0)
    assert taken is not None
    assert clock.now - taken.due == 7
    assert taken.asked == taken.due
    clock.now += 3
    assert queue.longest_running() == 3


def test_when_a_key_was_asked_for_last_is_told_once(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    clock.now += 5
    queue.add("a")  # is due already
    taken = queue.take(0)
    assert taken is not None
    assert (taken.due, taken.asked) == (1000, 1005)
    clock.now += 1
    queue.add("a")  # while it is worked on
    queue.done("a", again=300)
    taken = queue.take(0)
    assert taken is not None
    assert taken.asked == 1006
    queue.done("a", again=300)
    clock.now += 300
    taken = queue.take(0)
    assert taken is not None
    assert taken.asked == float("-inf")  # it came by itself


def test_a_forgotten_key_leaves_nothing_behind(queue: WorkQueue[str], clock: Clock) -> None:
    for number in range(5000):
        queue.add(str(number))
        queue.take(0)
        queue.failed(str(number))
        queue.forget(str(number))
    clock.now += LONGEST_PAUSE
    assert queue.take(0) is None
    assert queue.sizes() == (0,) * 7


def test_a_key_that_comes_back_while_it_is_forgotten_is_not_lost(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.take(0)
    queue.add("a")
    queue.forget("a")
    clock.now += 1
    assert keys(queue) == ["a"]


def test_never_two_workers_on_one_key() -> None:
    queue: WorkQueue[int] = WorkQueue(gap=0)
    busy: Counter[int] = Counter()
    worst: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            taken = queue.take(0.05)
            if taken is not None:
                busy[taken.key] += 1
                worst.append(busy[taken.key])
                time.sleep(0.0005)
                busy[taken.key] -= 1
                queue.done(taken.key)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for number in range(3000):
        queue.add(number % 4)
    time.sleep(0.2)
    stop.set()
    queue.close()
    for worker in workers:
        worker.join()
    assert len(worst) >= 4
    assert max(worst) == 1


def test_close_wakes_everybody() -> None:
    queue: WorkQueue[str] = WorkQueue()
    thread = threading.Thread(target=lambda: queue.take(60))
    thread.start()
    queue.close()
    thread.join(2)
    assert not thread.is_alive()
