# SPDX-License-Identifier: MIT
"""One JSON object a line: the node's object when it changed, its Lease every publish interval."""

from __future__ import annotations

from typing import Any, TextIO

from kubectl_pacto.errors import SinkFailed
from pacto_agent.budget import text_of


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
        self._print(observation)

    def renew(self, lease: dict[str, Any]) -> bool:
        """Print the Lease."""
        self._print(lease)
        return True

    def _print(self, raw: dict[str, Any]) -> None:
        try:
            print(text_of(raw), file=self._stream, flush=True)
        except BrokenPipeError:
            raise  # nobody reads any more: no failure, the end
        except (OSError, ValueError) as error:
            raise SinkFailed(sink="standard output", problem=str(error)) from error
