# SPDX-License-Identifier: MIT
"""The state of collection: which reason wins, what stays and what a resync heals."""

from __future__ import annotations

import pytest

from kubectl_pacto.model.node import CollectionReason, CollectionState
from pacto_agent.health import Health, PerMinute


def health() -> Health:
    """An agent that started at 100 and is well."""
    return Health(started_at=100.0, connections_since=100.0)


def test_a_new_agent_is_running() -> None:
    collection = health().collection()
    assert (collection.state, collection.reason, collection.message) == (
        CollectionState.RUNNING,
        CollectionReason.NONE,
        "",
    )
    assert collection.started_at == 100.0


@pytest.mark.parametrize(
    "reason",
    [CollectionReason.LOAD_FAILED, CollectionReason.ATTACH_FAILED, CollectionReason.RING_BUFFER_FAILED],
)
def test_a_failure_of_the_kernel_part_outweighs_all_and_stays(reason: CollectionReason) -> None:
    one = health()
    one.resync_problem = "no"
    one.lose(1, 1, 150.0)
    one.fail(reason, "words")
    one.resynced(200.0, dropped_meanwhile=False)
    collection = one.collection()
    assert (collection.state, collection.reason) == (CollectionState.FAILED, reason)
    assert collection.message == "words"


def test_of_two_failures_the_first_is_told() -> None:
    one = health()
    one.fail(CollectionReason.LOAD_FAILED, "first")
    one.fail(CollectionReason.RING_BUFFER_FAILED, "second")
    assert one.collection().message == "first"


def test_a_failed_resync_degrades_until_one_works() -> None:
    one = health()
    one.resync_problem = "/proc: denied"
    assert one.collection().reason is CollectionReason.RESYNC_FAILED
    assert one.collection().message == "/proc: denied"
    one.resynced(200.0, dropped_meanwhile=False)
    assert one.collection().reason is CollectionReason.NONE
    assert one.collection().last_resync == 200.0


def test_a_loss_degrades_until_a_resync_that_began_after_it() -> None:
    one = health()
    one.lose(3, 2, 150.0)
    collection = one.collection()
    assert (collection.state, collection.reason) == (
        CollectionState.DEGRADED,
        CollectionReason.EVENTS_DROPPED,
    )
    assert collection.dropped_events == 3
    one.resynced(140.0, dropped_meanwhile=True)
    assert one.collection().reason is CollectionReason.EVENTS_DROPPED
    one.resynced(160.0, dropped_meanwhile=False)
    assert one.collection().reason is CollectionReason.NONE
    assert one.collection().dropped_events == 3, "the counter only grows"


def test_lost_connections_move_the_time_since_which_none_was_lost_and_lost_listens_do_not() -> None:
    one = health()
    one.lose(1, 0, 150.0)
    assert one.collection().connections_since == 100.0
    one.lose(1, 1, 160.0)
    assert one.collection().connections_since == 160.0
    one.resynced(170.0, dropped_meanwhile=False)
    assert one.collection().connections_since == 160.0, "no baseline brings connections back"


def test_too_many_pods_degrade_and_say_how_many() -> None:
    one = health()
    one.pods_found, one.pod_limit_exceeded = 300, True
    assert one.collection().reason is CollectionReason.POD_LIMIT_EXCEEDED
    assert "300" in one.collection().message


@pytest.mark.parametrize(
    "reason",
    [
        CollectionReason.POD_LIMIT_EXCEEDED,
        CollectionReason.RESYNC_FAILED,
        CollectionReason.EVENTS_DROPPED,
    ],
)
def test_these_reasons_are_degraded(reason: CollectionReason) -> None:
    assert reason.state is CollectionState.DEGRADED


def test_a_rate_is_of_the_last_minute_alone() -> None:
    rate = PerMinute()
    told = [rate.add(2 * number, 30.0 * number) for number in range(5)]
    assert told == [0, 2, 4, 4, 4]
    assert rate.add(8, 150.0) == 2
    assert rate.add(8, 180.0) == 0


def test_a_rate_over_long_intervals_is_scaled_to_a_minute_and_rounded_up() -> None:
    rate = PerMinute()
    rate.add(0, 0.0)
    assert rate.add(6, 300.0) == 2


def test_a_rate_of_quick_publishes_is_bounded_in_memory() -> None:
    rate = PerMinute()
    assert [rate.add(number, number / 5) for number in range(5000)][-1] == 300
    assert len(rate._told) <= 302
