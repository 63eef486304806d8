# SPDX-License-Identifier: MIT
"""Live listeners and peers per pod, for people on a node: `pacto agent top`."""

from __future__ import annotations

from typing import Any, Final, TextIO

from pacto_agent.budget import unpacked
from pacto_agent.sinks.stream import show

CLEAR: Final = "\033[H\033[2J"


class TopSink:
    """Draws the whole view every interval; only a terminal is cleared in between.

    Raises BrokenPipeError, besides SinkFailed, once nobody looks any more.
    """

    requests: int | None = None  # no API is asked

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._raw: dict[str, Any] = {}

    def load(self) -> dict[str, Any] | None:
        """A screen remembers nothing."""
        return None

    def put(self, observation: dict[str, Any]) -> None:
        """Keep the object for the next picture."""
        self._raw = unpacked(observation)

    def renew(self, lease: dict[str, Any]) -> bool:
        """Draw; a heartbeat is nothing to look at."""
        del lease
        show(self._stream, "\n".join(lines(self._raw)), on_terminal=CLEAR)
        return True


def lines(raw: dict[str, Any]) -> list[str]:
    """The picture of one node object."""
    collection, node = raw["collection"], raw["node"]
    state = " ".join(filter(None, (collection["state"], collection["reason"])))
    counters = " ".join(
        f"{name} {collection[f'{name}Events']}" for name in ("dropped", "unattributed", "foreign")
    )
    how = f"mapper {node['mapper']}  cgroups {node['cgroupMode']}"
    head = f"{raw['nodeName']}  {state}  {how}  events: {counters}"
    result = [head, *([collection["message"]] if collection["message"] else []), ""]
    for pod in raw["pods"]:
        level = "complete" if pod["complete"] else ",".join(pod["reasons"])
        result.append(f"pod {pod['uid']}  {level}")
        result += [f"  listens  {_endpoint(one)}{_family(one)}" for one in pod["listeners"]]
        result += [f"  talks to {_endpoint(one)}  {_outcomes(one)}" for one in pod["peers"]]
    return result if raw["pods"] else [*result, "no pods on this node"]


def _endpoint(one: dict[str, Any]) -> str:
    address = f"[{one['address']}]" if ":" in one["address"] else one["address"]
    return f"{address}:{one['port']}"


def _family(listener: dict[str, Any]) -> str:
    return "  (IPv6 only)" if listener.get("v6only") else ""


def _outcomes(peer: dict[str, Any]) -> str:
    parts = [f"{peer[name]} {name}" for name in ("succeeded", "failed", "aborted", "open") if peer.get(name)]
    reason = f" (last: {peer['failureReason']})" if peer.get("failureReason") else ""
    return ", ".join(parts) + reason
