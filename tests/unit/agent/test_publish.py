# SPDX-License-Identifier: MIT
"""The object on change, and the Lease that is renewed only while it vouches for the current view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from pacto_agent.budget import unpacked
from pacto_agent.publish import Publisher, lease_of

INTERVAL = 30.0
VIEW = NodeRuntimeObservation(name="n", node_name="n", last_published=1000.0, pods=(PodView("a"),))
CHANGED = replace(VIEW, pods=(PodView("b"),))


class Sink:
    """Remembers what it got; refuses while told to."""

    requests: int | None = None

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.object: dict[str, Any] = {}
        self.lease: dict[str, Any] = {}
        self.refuse: set[str] = set()
        self.lost = False

    def load(self) -> dict[str, Any] | None:
        """Nothing from before."""
        return None

    def put(self, observation: dict[str, Any]) -> None:
        """Hold or refuse."""
        self._call("put")
        self.object = unpacked(observation)
        self.lost = False

    def renew(self, lease: dict[str, Any]) -> bool:
        """Hold or refuse, or say that the object is not there any more."""
        self._call("renew")
        if not self.lost:
            self.lease = lease
        return not self.lost

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.refuse:
            raise SinkFailed(sink="test", problem="refused")


def published(*views: NodeRuntimeObservation, vouch: bool = True) -> tuple[Sink, Publisher]:
    """A publisher that has published these."""
    sink = Sink()
    publisher = Publisher(sink, INTERVAL)
    for view in views:
        publisher.publish(view, 1000.0, vouch=vouch)
    return sink, publisher


def test_the_first_view_is_written_before_the_lease_that_vouches_for_it() -> None:
    sink, publisher = published(VIEW)
    assert sink.calls == ["put", "renew"]
    assert publisher.problem == ""


def test_an_unchanged_view_is_not_written_again() -> None:
    sink, _ = published(VIEW, VIEW, VIEW)
    assert sink.calls == ["put", "renew", "renew", "renew"]


def test_a_changed_view_is() -> None:
    sink, _ = published(VIEW, CHANGED)
    assert sink.calls == ["put", "renew", "put", "renew"]
    assert sink.object["pods"][0]["uid"] == "b"


def test_a_failed_write_withholds_the_lease_and_is_tried_again() -> None:
    sink, publisher = published(VIEW)
    sink.refuse = {"put"}
    for _ in range(2):
        publisher.publish(CHANGED, 1030.0, vouch=True)
    assert sink.calls[2:] == ["put", "put"], "no renewal covers a view that is not held"
    assert "refused" in publisher.problem
    sink.refuse = set()
    publisher.publish(CHANGED, 1060.0, vouch=True)
    assert sink.calls[4:] == ["put", "renew"]
    assert publisher.problem == ""


def test_after_a_failed_write_even_the_old_view_is_written_again() -> None:
    # whether the refused write arrived is unknown
    sink, publisher = published(VIEW)
    sink.refuse = {"put"}
    publisher.publish(CHANGED, 1030.0, vouch=True)
    sink.refuse = set()
    publisher.publish(VIEW, 1060.0, vouch=True)
    assert sink.calls[-2:] == ["put", "renew"]


def test_a_failed_renewal_is_said_and_needs_no_new_write() -> None:
    sink, publisher = published(VIEW)
    sink.refuse = {"renew"}
    publisher.publish(VIEW, 1030.0, vouch=True)
    assert publisher.problem
    sink.refuse = set()
    publisher.publish(VIEW, 1060.0, vouch=True)
    assert sink.calls == ["put", "renew", "renew", "renew"]


def test_an_object_that_the_sink_lost_is_written_again_before_the_lease() -> None:
    sink, publisher = published(VIEW)
    sink.lost, sink.object, sink.lease = True, {}, {}
    publisher.publish(VIEW, 1030.0, vouch=True)
    assert sink.calls[2:] == ["renew", "put", "renew"]
    assert sink.object["pods"][0]["uid"] == "a"
    assert sink.lease["spec"]["renewTime"] == "1970-01-01T00:17:10.000000Z"


def test_an_object_that_was_lost_and_cannot_be_written_is_written_at_the_next_interval() -> None:
    sink, publisher = published(VIEW)
    sink.lost, sink.refuse = True, {"put"}
    publisher.publish(VIEW, 1030.0, vouch=True)
    assert "refused" in publisher.problem
    sink.refuse = set()
    publisher.publish(VIEW, 1060.0, vouch=True)
    assert sink.calls[2:] == ["renew", "put", "put", "renew"]


def test_a_silent_reader_withholds_the_lease_and_not_the_object() -> None:
    sink, _ = published(VIEW, CHANGED, vouch=False)
    assert sink.calls == ["put", "put"]


def test_a_lease_says_who_until_when_and_for_how_long() -> None:
    lease = lease_of(VIEW, INTERVAL, 1000.123456)
    assert lease["metadata"]["name"] == "n"
    assert lease["metadata"]["namespace"] == VIEW.namespace
    assert lease["metadata"]["labels"] == VIEW.labels
    assert lease["spec"] == {
        "holderIdentity": "n",
        "leaseDurationSeconds": 90,
        "renewTime": "1970-01-01T00:16:40.123456Z",
    }


def test_a_lease_lasts_a_second_at_least() -> None:
    assert lease_of(VIEW, 0.2, 0.0)["spec"]["leaseDurationSeconds"] == 1
