# SPDX-License-Identifier: MIT
"""The heartbeat vouches for the object: the agent's sink against a server with faults."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.kube import paths
from pacto_agent.sinks.kubernetes import KubernetesSink
from tests.support.fake_api import FakeApi, Fault
from tests.unit.kube.conftest import MakeClient

NS = "pacto-node-agent"
OBJECT = paths.node_observations(NS, "node-a")
LEASE = paths.leases(NS, "node-a")
INTERVAL = 30.0


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def view(number: int = 1) -> dict[str, Any]:
    return {
        "kind": "NodeRuntimeObservation",
        "metadata": {"name": "node-a", "namespace": NS},
        "number": number,
    }


def lease(number: int = 1) -> dict[str, Any]:
    return {
        "kind": "Lease",
        "metadata": {"name": "node-a", "namespace": NS},
        "spec": {"renewTime": str(number)},
    }


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_sink(make_client: MakeClient, clock: Clock) -> Callable[[], KubernetesSink]:
    return lambda: KubernetesSink(
        make_client(attempts=2), namespace=NS, name="node-a", interval=INTERVAL, clock=clock
    )


def test_object_and_lease_are_created_then_replaced(
    api: FakeApi, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    sink.renew(lease(1))
    sink.put(view(2))
    sink.renew(lease(2))
    assert api.objects[OBJECT]["number"] == 2
    assert api.objects[LEASE]["spec"]["renewTime"] == "2"


def test_a_second_agent_takes_over_what_the_first_one_left(
    api: FakeApi, make_sink: Callable[[], KubernetesSink]
) -> None:
    first, second = make_sink(), make_sink()
    first.put(view(1))
    assert second.load() == api.objects[OBJECT]
    second.put(view(2))
    second.renew(lease(1))
    assert api.objects[OBJECT]["number"] == 2


def test_load_finds_nothing_on_a_new_node(make_sink: Callable[[], KubernetesSink]) -> None:
    assert make_sink().load() is None


def test_a_failed_write_is_told_and_nothing_is_renewed_before_the_next_one(
    api: FakeApi, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    api.faults.extend([Fault(503), Fault(503)])
    with pytest.raises(SinkFailed, match="busy"):
        sink.put(view(2))
    assert api.objects[OBJECT]["number"] == 1
    assert not sink.renew(lease(1))
    assert LEASE not in api.objects
    sink.put(view(2))
    assert sink.renew(lease(1))
    assert LEASE in api.objects


def test_a_renewal_fails_while_nobody_can_say_what_is_held(
    api: FakeApi, clock: Clock, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    clock.now += INTERVAL
    api.faults.append(Fault(403))
    with pytest.raises(SinkFailed, match="not allowed"):
        sink.renew(lease(1))
    assert LEASE not in api.objects


@pytest.mark.parametrize("theirs", [None, view(99)], ids=["deleted", "somebody else's"])
def test_an_object_that_is_not_what_was_put_gets_no_heartbeat_until_it_is_put_again(
    api: FakeApi, clock: Clock, make_sink: Callable[[], KubernetesSink], theirs: dict[str, Any] | None
) -> None:
    sink = make_sink()
    sink.put(view(1))
    sink.renew(lease(1))
    if theirs is None:
        del api.objects[OBJECT]
    else:
        api.put(OBJECT, theirs)
    clock.now += INTERVAL
    assert not sink.renew(lease(2))
    assert api.objects[LEASE]["spec"]["renewTime"] == "1"
    sink.put(view(1))
    assert sink.renew(lease(2))
    assert api.objects[OBJECT]["number"] == 1
    assert api.objects[LEASE]["spec"]["renewTime"] == "2"


def test_no_check_is_older_than_two_intervals_when_it_vouches(
    api: FakeApi, clock: Clock, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    sink.renew(lease(0))
    api.seen.clear()
    for number in range(1, 11):
        clock.now += INTERVAL
        assert sink.renew(lease(number))
    reads = [one for one in api.seen if one.path == OBJECT]
    assert len(reads) == 10
    assert all(one.method == "GET" and "PartialObjectMetadata" in one.accept for one in reads)


def test_a_quiet_node_costs_two_requests_per_interval(
    api: FakeApi, clock: Clock, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    sink.renew(lease(0))
    before = sink.requests
    for number in range(20):
        clock.now += INTERVAL
        sink.renew(lease(number))
    assert sink.requests - before == 40


def test_a_conflict_is_retried_against_the_newest_version(
    api: FakeApi, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    api.put(OBJECT, view(50))
    sink.put(view(2))
    assert api.objects[OBJECT]["number"] == 2


def test_a_lease_that_somebody_else_holds_is_taken_back(
    api: FakeApi, clock: Clock, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(1))
    sink.renew(lease(1))
    api.put(LEASE, lease(77))
    clock.now += INTERVAL
    sink.renew(lease(2))
    assert api.objects[LEASE]["spec"]["renewTime"] == "2"


def test_a_thousand_cycles_open_no_connection_and_start_no_thread(
    api: FakeApi, clock: Clock, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    sink.put(view(0))
    sink.renew(lease(0))
    threads, connections = threading.active_count(), {one.client for one in api.seen}
    for number in range(1, 1001):
        clock.now += INTERVAL
        if not number % 10:
            sink.put(view(number))
        sink.renew(lease(number))
    assert threading.active_count() == threads
    assert {one.client for one in api.seen} == connections


def test_no_write_makes_the_server_send_the_object_back(
    api: FakeApi, make_sink: Callable[[], KubernetesSink]
) -> None:
    sink = make_sink()
    for number in range(3):
        sink.put(view(number))
        sink.renew(lease(number))
    assert all("PartialObjectMetadata" in one.accept for one in api.seen)
