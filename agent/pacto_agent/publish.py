# SPDX-License-Identifier: MIT
"""The node's object when its view changed, and the Lease that vouches for it.

Called by the agent every publish interval. The Lease is renewed only while the sink is known to
hold the current view and the ring is being read: a heartbeat must never cover a view that is not so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from kubectl_pacto.errors import SinkFailed
from kubectl_pacto.model.bounds import STALENESS_INTERVALS
from kubectl_pacto.model.instant import format_instant
from kubectl_pacto.model.node import NodeRuntimeObservation, PodView
from pacto_agent.budget import fit
from pacto_agent.change import Told, changed, told_of

LEASE_API: Final = "coordination.k8s.io/v1"


class Sink(Protocol):
    """Where a node's view goes. All methods raise SinkFailed; BrokenPipeError ends the agent."""

    @property
    def requests(self) -> int | None:
        """Requests to an API so far, None where the sink asks none."""

    def load(self) -> dict[str, Any] | None:
        """The object that an agent before this one left, None for none."""

    def put(self, observation: dict[str, Any]) -> None:
        """Hold this object from now on; its pods may be texts (budget.PodText)."""

    def renew(self, lease: dict[str, Any]) -> bool:
        """Say that the object held is current; False, and nothing is said: it is not held any more."""


def lease_of(observation: NodeRuntimeObservation, interval: float, now: float) -> dict[str, Any]:
    """The heartbeat of a node: named after it, in the object's namespace."""
    return {
        "apiVersion": LEASE_API,
        "kind": "Lease",
        "metadata": {
            "name": observation.name,
            "namespace": observation.namespace,
            "labels": dict(observation.labels),
        },
        "spec": {
            "holderIdentity": observation.node_name,
            "leaseDurationSeconds": max(1, round(STALENESS_INTERVALS * interval)),
            "renewTime": format_instant(now, digits=6),
        },
    }


class Publisher:
    """Writes on change, renews every time; `problem` says why the last write failed.

    `has_published`: some write was acknowledged.
    """

    def __init__(self, sink: Sink, interval: float) -> None:
        self._sink = sink
        self._interval = interval
        self._held: Told | None = None
        self.problem = ""
        self.has_published = False

    def publish(
        self,
        observation: NodeRuntimeObservation,
        now: float,
        *,
        vouch: bool,
        pods: Sequence[PodView] | None = None,
    ) -> None:
        """One publish interval is over; `vouch`: the view is current as far as the agent knows.

        `pods`: those of the view, in place of `observation`'s; each may be made anew when it is asked for.
        """
        pods = observation.pods if pods is None else pods
        told = told_of(observation, pods)
        try:
            if changed(self._held, told, self._interval):
                self._put(observation, pods, told)
            if vouch and not self._renew(observation, now):
                self._put(observation, pods, told)
                self._renew(observation, now)
        except SinkFailed as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def _put(self, observation: NodeRuntimeObservation, pods: Sequence[PodView], told: Told) -> None:
        self._held = None  # whatever becomes of the write, what the sink holds is unknown
        self._sink.put(fit(observation, pods))
        self._held = told
        self.has_published = True

    def _renew(self, observation: NodeRuntimeObservation, now: float) -> bool:
        return self._sink.renew(lease_of(observation, self._interval, now))
