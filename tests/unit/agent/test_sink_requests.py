# SPDX-License-Identifier: MIT
"""Requests per node and minute: bounded whatever the server answers, and told in the object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.kube import paths
from kubectl_pacto.kube.client import Client, Waiting
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.transport import Response, TransportError
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from pacto_agent.health import PerMinute
from pacto_agent.publish import Publisher
from pacto_agent.sinks.kubernetes import REQUESTS_PER_PUBLISH, KubernetesSink
from tests.support.fake_api import FakeApi

NS = "pacto-node-agent"
OBJECT = paths.node_observations(NS, "n")
ATTEMPTS = 3  # the agent's own, see run.py
INTERVAL = 30.0
CUT = 0


class Moody:
    """An API that answers, refuses, or ends the connection, as a test has it; then it is well."""

    def __init__(self, moods: list[int]) -> None:
        self.api = FakeApi()
        self.moods = moods

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """As Transport: a mood is a status to answer without a look, CUT, or 200 for the truth."""
        mood = self.moods.pop(0) if self.moods else 200
        if mood == CUT:
            raise TransportError("cut")
        status, answer = mood, {"message": "mood"}
        if mood == 200:
            status, answer = self.api.answer(method, path, headers["Accept"], json.loads(body or b"null"))
        return Response(status, json.dumps(answer).encode())

    def close(self) -> None:
        """Nothing is held."""


def made(moods: list[int]) -> tuple[Moody, KubernetesSink, list[float]]:
    """A server, a sink on it, and the clock that the sink reads."""
    server, now = Moody(moods), [1000.0]
    client = Client(server, retries=RetryPolicy(ATTEMPTS), waiting=Waiting(sleep=lambda _: None))
    sink = KubernetesSink(client, namespace=NS, name="n", interval=INTERVAL, clock=lambda: now[0])
    return server, sink, now


def view(uid: str = "a") -> NodeRuntimeObservation:
    """A node's view of one pod."""
    return NodeRuntimeObservation(name="n", node_name="n", pods=(PodView(uid),))


@given(
    st.lists(st.sampled_from([200, 404, 409, 503, CUT]), max_size=200),
    st.lists(st.booleans(), min_size=1, max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_no_server_makes_a_publish_cost_more_than_its_bound(moods: list[int], changes: list[bool]) -> None:
    _, sink, now = made(moods)
    publisher = Publisher(sink, INTERVAL)
    for number, change in enumerate(changes):
        before = sink.requests
        publisher.publish(view(f"pod-{number}" if change else "a"), now[0], vouch=True)
        assert sink.requests - before <= REQUESTS_PER_PUBLISH * ATTEMPTS
        now[0] += INTERVAL


def test_the_bound_is_no_higher_than_what_the_worst_server_gets() -> None:
    # each write is refused as long as it may be, and each answer comes at the last attempt
    late = [503, 503]
    refused = [*late, 200, *late, 409]
    server, sink, _ = made([*refused, *refused, *late, 200, *late, 200] * 2)
    server.api.put(OBJECT, {"metadata": {"name": "n"}})
    server.api.put(paths.leases(NS, "n"), {"metadata": {"name": "n"}})
    publisher = Publisher(sink, INTERVAL)
    publisher.publish(view(), 1000.0, vouch=True)
    assert publisher.problem == ""
    assert sink.requests == REQUESTS_PER_PUBLISH * ATTEMPTS


def test_a_busy_node_costs_two_requests_an_interval_and_a_quiet_one_too() -> None:
    _, sink, now = made([])
    publisher = Publisher(sink, INTERVAL)
    publisher.publish(view(), now[0], vouch=True)
    rate = PerMinute()
    rate.add(sink.requests, now[0])
    told = []
    for number in range(8):
        now[0] += INTERVAL
        publisher.publish(view(f"pod-{number}" if number % 2 else "a"), now[0], vouch=True)
        told.append(rate.add(sink.requests, now[0]))
    assert told == [2, *[4] * 7]


@pytest.mark.parametrize("status", [401, 403, 413, 422])
def test_a_refusal_for_good_is_asked_for_once(status: int) -> None:
    _, sink, _ = made([status] * 50)
    raw: dict[str, Any] = {"metadata": {"name": "n"}}
    with pytest.raises(SinkFailed):
        sink.put(raw)
    assert sink.requests == 1
