# SPDX-License-Identifier: MIT
"""The facts that a finding of the demo rests on: what Kubernetes says, what the kernel saw. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kubectl_pacto.cli.demo.judge import WINDOW_SECONDS, Expected, ExpectedStatus
from kubectl_pacto.cli.demo.objects import ADDRESSES, PORT, LivePod, Raw
from kubectl_pacto.model.instant import parse_instant

Fact: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Scene:
    """All that was known at the last pass: the pods, the agent's objects, the moment."""

    pods: Mapping[str, LivePod]
    node_objects: Sequence[Raw]
    at: float

    def view(self, app: str) -> Mapping[str, Any]:
        """What the agent says of an app's pod."""
        for item in self.node_objects:
            for pod in item.get("pods", ()):
                if pod["uid"] == self.pods[app].uid:
                    return dict(pod)
        return {}

    def heartbeat_age(self) -> float | None:
        """Seconds since the agent renewed its Lease."""
        for item in self.node_objects:
            if item["kind"] == "Lease":
                return self.at - parse_instant(item["spec"]["renewTime"])
        return None


def facts_of(one: Expected | ExpectedStatus, scene: Scene, status: Raw) -> list[Fact]:
    """What `one` rests on, as (where from, what) pairs."""
    if isinstance(one, ExpectedStatus):
        return [_endpoint(one.pacto, scene), _listeners(one.pacto, scene), _coverage(one.pacto, scene)]
    other = one.subject.partition("/")[2]
    if one.code == "INTERFACE_ABSENT":
        found = [_endpoint(one.pacto, scene), _listeners(one.pacto, scene)]
    elif one.code == "DEPENDENCY_UNREACHABLE":
        found = [_endpoint(other, scene), _peer(one.pacto, other, scene)]
    else:
        found = [_declared(one.pacto, other, status), _peer(one.pacto, other, scene)]
    return [*found, _coverage(one.pacto, scene), *_window(one, scene, status)]


def _place(app: str) -> str:
    return f"{ADDRESSES[app]}:{PORT}"


def _endpoint(app: str, scene: Scene) -> Fact:
    ready = "ready (readiness probe passes)" if scene.pods[app].ready else "not ready"
    return "kubernetes", f"endpoint {_place(app)} of Service {app} is {ready}"


def _listeners(app: str, scene: Scene) -> Fact:
    listeners = [f"{item['address']}:{item['port']}" for item in scene.view(app).get("listeners", ())]
    what = f"listens on {', '.join(listeners)}" if listeners else "listens on no port at all"
    return "kernel", f"pod {app} {what}"


def _peer(app: str, other: str, scene: Scene) -> Fact:
    peers = scene.view(app).get("peers", ())
    peer = next((item for item in peers if (item["address"], item["port"]) == (ADDRESSES[other], PORT)), None)
    if peer is None:
        return "kernel", f"pod {app} made no connection to {_place(other)}"
    reason = f" ({peer['failureReason']})" if peer.get("failureReason") else ""
    counts = f"{peer['succeeded']} connected, {peer['failed']} failed{reason}"
    last = scene.at - max(
        parse_instant(peer[name]) for name in ("lastSuccess", "lastFailure") if name in peer
    )
    return "kernel", f"pod {app} to {_place(other)}: {counts}, last {last:.1f} s ago"


def _declared(app: str, other: str, status: Raw) -> Fact:
    names = ", ".join(item["name"] for item in status.get("dependencies", ()))
    return "contract", f"{_place(other)} is Pacto {other}'s; {app} declares only {names}"


def _coverage(app: str, scene: Scene) -> Fact:
    view, age = scene.view(app), scene.heartbeat_age()
    if not view or age is None or "baselineAt" not in view:
        return "coverage", f"pod {app} is not covered yet"
    after = parse_instant(view["baselineAt"]) - scene.pods[app].started
    how = "complete" if view["complete"] else f"partial ({', '.join(view['reasons'])})"
    return "coverage", f"{how}: baseline {after:.1f} s after the pod started, heartbeat {age:.1f} s old"


def _window(one: Expected, scene: Scene, status: Raw) -> Iterator[Fact]:
    for window in status.get("observationWindows", ()):
        if f"{window['kind']}/{window['subject']}" == one.subject:
            since = window["firstObservedNegativeAt"]
            stood = scene.at - parse_instant(since)
            yield "window", f"negative without a break for {stood:.1f} s, {WINDOW_SECONDS:g} s are asked for"
