# SPDX-License-Identifier: MIT
"""One JSON object a line: the node's object when it changed, its Lease every publish interval."""

from __future__ import annotations

from typing import Any, TextIO

from pacto_agent.budget import text_of
from pacto_agent.sinks.stream import show


class StdoutSink:
    """Writes to a text stream, flushed after each line so that a reader sees it at once.

    Raises BrokenPipeError, besides SinkFailed, once nobody reads it any more.
    """

    requests: int | None = None  # no API is asked

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def load(self) -> dict[str, Any] | None:
        """Nothing can be read back from a stream."""
        return None

    def put(self, observation: dict[str, Any]) -> None:
        """Print the object."""
        show(self._stream, text_of(observation))

    def renew(self, lease: dict[str, Any]) -> bool:
        """Print the Lease."""
        show(self._stream, text_of(lease))
        return True
