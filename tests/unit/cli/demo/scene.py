# SPDX-License-Identifier: MIT
"""A demo without a kernel: the node object that the agent would have written, second by second."""

from __future__ import annotations

from typing import Any

from kubectl_pacto.cli.demo.facts import Scene
from kubectl_pacto.cli.demo.judge import Judge
from kubectl_pacto.cli.demo.objects import ADDRESSES, APPS, PORT, LivePod, cluster_objects
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.node import AGENT_LABELS, AGENT_NAMESPACE

START = 1_796_000_000.0


def pods(*, ready: bool = True) -> dict[str, LivePod]:
    """The pods as kubelet would report them."""
    return {
        app.name: LivePod(f"uid-{app.name}", "demo-node", app.address, "c0de", START, ready) for app in APPS
    }


def peer(app: str, at: float, *, refused: bool = False) -> dict[str, Any]:
    """Ten calls to an app, the last one half a second ago."""
    last = format_instant(at - 0.5, digits=3)
    return {
        "address": ADDRESSES[app],
        "port": PORT,
        "succeeded": 0 if refused else 10,
        "failed": 10 if refused else 0,
        **({"lastFailure": last, "failureReason": "refused"} if refused else {"lastSuccess": last}),
    }


def node_objects(at: float, **changes: dict[str, Any]) -> list[dict[str, Any]]:
    """The agent's object and Lease at a moment; `changes` by app replace parts of a pod's view."""
    views = {
        app.name: {
            "uid": f"uid-{app.name}",
            "baselineAt": format_instant(START + 1.5, digits=3),
            "complete": True,
            "reasons": [],
            "listeners": [{"address": "0.0.0.0", "port": PORT}] if app.serves else [],
            "peers": [peer(name, at, refused=name == "inventory") for name in app.calls],
            **changes.get(app.name, {}),
        }
        for app in APPS
    }
    metadata = {"name": "demo-node", "namespace": AGENT_NAMESPACE, "labels": dict(AGENT_LABELS)}
    return [
        {
            "apiVersion": "pacto.trianalab.io/v1alpha1",
            "kind": "NodeRuntimeObservation",
            "metadata": metadata,
            "nodeName": "demo-node",
            "collection": {"state": "Running", "connectionsSince": format_instant(START)},
            "pods": list(views.values()),
        },
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {"renewTime": format_instant(at - 0.25, digits=6), "leaseDurationSeconds": 3},
        },
    ]


def play(seconds: int, *, ready: bool = True, **changes: dict[str, Any]) -> tuple[Judge, Scene]:
    """A pass each second, from the first second on."""
    judge = Judge()
    for second in range(1, seconds + 1):
        at = START + second
        seen = node_objects(at, **changes)
        judge.judge([*cluster_objects(pods(ready=ready), judge.statuses), *seen], at)
    return judge, Scene(pods(ready=ready), seen, at)
