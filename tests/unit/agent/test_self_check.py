# SPDX-License-Identifier: MIT
"""An agent that does not find its own pod among the node's cgroups says so: its map cannot be trusted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kubectl_pacto.model.node import CollectionReason, CollectionState
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent.agent import Agent
from pacto_agent.config import Options
from tests.support.agents import MemorySink
from tests.support.faketree import make_cgroups
from tests.unit.agent.test_agent import StandIn, StandInMapper

OWN = "11111111-1111-4111-8111-111111111111"
OUTER = "22222222-2222-4222-8222-222222222222"
POD = f"/kubepods/burstable/pod{OWN}/{{a}}"


def published(monkeypatch: pytest.MonkeyPatch, root: Path, uid: str) -> tuple[CollectionState, str, str]:
    """State, reason and message after the first resync of an agent in the pod `uid`."""
    mapper = StandInMapper()
    monkeypatch.setattr("pacto_agent.agent.open_tracer", lambda **_more: StandIn())
    monkeypatch.setattr("pacto_agent.agent.open_mapper", lambda *_args, **_more: mapper)
    sink = MemorySink()
    agent = Agent(Options(node_name="n", pod_uid=uid, cgroup_root=str(root)), sink, threading.Event())
    agent.open()
    agent._resync()
    agent._publish()
    assert sink.object is not None
    collection = decode_node(sink.object).collection
    return collection.state, collection.reason.value, collection.message


def test_an_agent_among_its_nodes_cgroups_is_running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state, _, message = published(monkeypatch, make_cgroups(tmp_path, {"": [POD]}), OWN)
    assert (state, message) == (CollectionState.RUNNING, "")


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param([], id="the container's own mount shows no pod at all"),
        pytest.param([f"/kubepods/pod{OUTER}/{{a}}{POD}"], id="every pod is named like the one around them"),
        pytest.param(["/strange/layout/{a}"], id="a layout that nobody knows"),
    ],
)
def test_an_agent_that_does_not_find_itself_is_degraded_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, paths: list[str]
) -> None:
    state, reason, message = published(monkeypatch, make_cgroups(tmp_path, {"": paths}), OWN)
    assert (state, reason) == (CollectionState.DEGRADED, CollectionReason.RESYNC_FAILED.value)
    assert "/sys/fs/cgroup" in message
    assert str(tmp_path) in message


@pytest.mark.parametrize("uid", [OWN, ""])
def test_a_root_without_any_cgroup_hierarchy_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uid: str
) -> None:
    state, reason, message = published(monkeypatch, tmp_path, uid)
    assert (state, reason) == (CollectionState.DEGRADED, CollectionReason.RESYNC_FAILED.value)
    assert f"no cgroup hierarchy in {tmp_path}" in message
    assert "mount" in message


def test_outside_of_a_pod_there_is_nothing_to_find(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert published(monkeypatch, make_cgroups(tmp_path, {"": []}), "")[0] is CollectionState.RUNNING
