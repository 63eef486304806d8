# SPDX-License-Identifier: MIT
"""What counts as a change of the view, clause by clause; what merely rides along."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubectl_pacto.model.node import (
    Collection,
    CollectionReason,
    CollectionState,
    FailureReason,
    Listener,
    NodeInfo,
    NodeRuntimeObservation,
    Peer,
    PodReason,
    PodView,
)
from pacto_agent.change import Told, changed, told_of

INTERVAL = 30.0
PEER = Peer("10.0.0.1", 5432, succeeded=1, failed=1, last_success=1000.0, last_failure=1000.0)
POD = PodView("a", 900.0, True, (), (Listener("0.0.0.0", 80),), (PEER,))
BEFORE = NodeRuntimeObservation(
    name="n",
    node_name="n",
    last_published=1000.0,
    collection=Collection(started_at=800.0, last_resync=900.0, connections_since=800.0),
    node=NodeInfo(agent_version="1"),
    pods=(POD,),
)


def with_peer(**facts: Any) -> NodeRuntimeObservation:
    """The view with its one peer changed."""
    return with_pod(peers=(replace(PEER, **facts),))


def with_pod(**facts: Any) -> NodeRuntimeObservation:
    """The view with its one pod changed."""
    return replace(BEFORE, pods=(replace(POD, **facts),))


def with_collection(**facts: Any) -> NodeRuntimeObservation:
    """The view with its state of collection changed."""
    return replace(BEFORE, collection=replace(BEFORE.collection, **facts))


CHANGES = {
    "a pod came": replace(BEFORE, pods=(POD, replace(POD, uid="b"))),
    "a pod went": replace(BEFORE, pods=()),
    "another pod in its place": with_pod(uid="b"),
    "complete": with_pod(complete=False),
    "reasons": with_pod(reasons=(PodReason.TRUNCATED,)),
    "the first baseline": with_pod(baseline_at=None),
    "collection's state": with_collection(state=CollectionState.DEGRADED),
    "collection's reason": with_collection(reason=CollectionReason.RESYNC_FAILED),
    "the agent's start": with_collection(started_at=950.0),
    "the last drop of a connection": with_collection(connections_since=950.0),
    "the agent's version": replace(BEFORE, node=NodeInfo(agent_version="2")),
    "a listener came": with_pod(listeners=(Listener("0.0.0.0", 80), Listener("0.0.0.0", 81))),
    "a listener went": with_pod(listeners=()),
    "a listener's families": with_pod(listeners=(Listener("0.0.0.0", 80, v6only=True),)),
    "a peer came": with_pod(peers=(PEER, replace(PEER, port=5433))),
    "a peer went": with_pod(peers=()),
    "another peer in its place": with_peer(address="10.0.0.2"),
    "another port in its place": with_peer(port=5433),
    "a failure reason": with_peer(failure_reason=FailureReason.TIMEOUT),
    "open began": with_peer(open=1),
    "a success moved by an interval": with_peer(last_success=1000.0 + INTERVAL),
    "a failure moved by an interval": with_peer(last_failure=1000.0 + INTERVAL),
}
RIDE_ALONG = {
    "the time of publishing": replace(BEFORE, last_published=1030.0),
    "a later baseline": with_pod(baseline_at=960.0),
    "a later resync": with_collection(last_resync=960.0),
    "dropped listen events of before": with_collection(dropped_events=5),
    "unattributed events": with_collection(unattributed_events=5),
    "foreign events": with_collection(foreign_events=5),
    "requests to the API": with_collection(api_requests_per_minute=5),
    "words": with_collection(message="other words"),
    "counters": with_peer(succeeded=100, failed=100, aborted=100),
    "a success moved by less": with_peer(last_success=1000.0 + INTERVAL - 0.1),
    "a failure moved by less": with_peer(last_failure=1000.0 + INTERVAL - 0.1),
}


def told(view: NodeRuntimeObservation) -> Told:
    """What is held of a view."""
    return told_of(view, view.pods)


def is_change(before: NodeRuntimeObservation, after: NodeRuntimeObservation) -> bool:
    """Whether `after` would be written when `before` was."""
    return changed(told(before), told(after), INTERVAL)


@pytest.mark.parametrize("after", [pytest.param(view, id=name) for name, view in CHANGES.items()])
def test_a_change_is(after: NodeRuntimeObservation) -> None:
    assert is_change(BEFORE, after)


@pytest.mark.parametrize("after", [pytest.param(view, id=name) for name, view in RIDE_ALONG.items()])
def test_no_change_is(after: NodeRuntimeObservation) -> None:
    assert not is_change(BEFORE, after)


def test_the_first_view_is_a_change() -> None:
    assert changed(None, told(BEFORE), INTERVAL)
    assert not is_change(BEFORE, BEFORE)


@pytest.mark.parametrize("which", ["last_success", "last_failure"])
def test_success_or_failure_that_began_is_a_change(which: str) -> None:
    assert is_change(with_peer(**{which: None}), BEFORE)
    assert is_change(BEFORE, with_peer(**{which: None}))


def test_open_counts_ride_along_while_some_are() -> None:
    one, two = with_peer(open=1, open_since=5.0), with_peer(open=2, open_since=5.0)
    assert not is_change(one, two)
    assert is_change(one, BEFORE)
