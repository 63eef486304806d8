# SPDX-License-Identifier: MIT
"""What the reasons of a coverage mean, in words for whoever is woken by them, and small grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

MOST_NAMES: Final = 3
MOST_TEXT: Final = 200  # of what another process wrote

# docs/observations.md has the same list, with what to do
REASONS: Final[Mapping[str, str]] = {
    "NoNodeObject": "no object of this node that counts: by its name, its namespace and the agent's labels",
    "PodLimitExceeded": "more pods run on this node than its agent keeps",
    "ResyncFailed": "its node's agent could not read /proc again",
    "EventsDropped": "its node's agent lost events and has not looked again since",
    "LoadFailed": "its node's agent could not load its program",
    "AttachFailed": "its node's agent could not attach its program",
    "RingBufferFailed": "its node's agent could not read its ring buffer",
    "RuntimeClass": "its runtime class may have a TCP stack of its own",
    "HostNetwork": "it shares the node's network",
    "SharedNamespace": "another pod calls its network namespace its own",
    "NotMapped": "its node's agent finds none of its processes",
    "NamespaceChanged": "its sandbox was made anew and not read yet",
    "Truncated": "it has more listeners or peers than its node's agent keeps",
    "NotListed": "its node's agent does not list it",
    "NotComplete": "its node's agent does not say why",
    "BaselineBeforeStart": "its node's agent has not read its sockets since it started",
}


def explain(reason: str) -> str:
    """A reason with what it means, where that is known."""
    words = REASONS.get(reason)
    return f"{reason}: {words}" if words else reason


def quoted(text: str) -> str:
    """What another process wrote, on one line and not for ever."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]}..."


def several(parts: Sequence[str]) -> str:
    """The first few of these, and how many more there are."""
    named = ", ".join(parts[:MOST_NAMES])
    return named if len(parts) <= MOST_NAMES else f"{named} and {len(parts) - MOST_NAMES} more"


def count(number: int, noun: str) -> str:
    """`no pod`, `1 pod`, `2 pods`."""
    return f"{number or 'no'} {noun}{'s' if number > 1 else ''}"
