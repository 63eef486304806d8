# SPDX-License-Identifier: MIT
"""What people see of a node's pods."""

from __future__ import annotations

import io

import pytest

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.model.node import (
    FailureReason,
    Listener,
    NodeInfo,
    NodeRuntimeObservation,
    Peer,
    PodReason,
    PodView,
)
from kubectl_pacto.model.node_codec import encode_node
from pacto_agent.sinks.top import CLEAR, TopSink, lines

VIEW = NodeRuntimeObservation(
    name="node-a",
    node_name="node-a",
    node=NodeInfo(cgroup_mode="v2", mapper="iter"),
    pods=(
        PodView(
            uid="pod-1",
            complete=True,
            listeners=(Listener("0.0.0.0", 80), Listener("::", 443, v6only=True)),
            peers=(
                Peer("10.0.0.1", 5432, succeeded=3, failed=1, failure_reason=FailureReason.REFUSED, open=2),
            ),
        ),
        PodView(uid="pod-2", reasons=(PodReason.NOT_MAPPED, PodReason.TRUNCATED)),
    ),
)


def test_pods_listeners_and_peers_are_shown_with_why_not_complete() -> None:
    assert lines(encode_node(VIEW)) == [
        "node-a  Running  mapper iter  cgroups v2  events: dropped 0 unattributed 0 foreign 0",
        "",
        "pod pod-1  complete",
        "  listens  0.0.0.0:80",
        "  listens  [::]:443  (IPv6 only)",
        "  talks to 10.0.0.1:5432  3 succeeded, 1 failed, 2 open (last: refused)",
        "pod pod-2  NotMapped,Truncated",
    ]


def test_a_node_without_pods_says_so() -> None:
    assert lines(encode_node(NodeRuntimeObservation(name="n", node_name="n")))[-1] == "no pods on this node"


def test_a_pipe_gets_no_control_characters() -> None:
    stream = io.StringIO()
    sink = TopSink(stream)
    sink.put(encode_node(VIEW))
    sink.renew({})
    assert CLEAR not in stream.getvalue()
    assert stream.getvalue().startswith("node-a  Running")


def test_a_closed_stream_is_a_failed_sink() -> None:
    stream = io.StringIO()
    sink = TopSink(stream)
    sink.put(encode_node(VIEW))
    stream.close()
    with pytest.raises(SinkFailed, match="standard output"):
        sink.renew({})
