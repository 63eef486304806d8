# SPDX-License-Identifier: MIT
"""Text for whoever reads standard output: what both sinks that print do with it."""

from __future__ import annotations

from typing import TextIO

from kubectl_pacto.errors import SinkFailed


def show(stream: TextIO, text: str, *, on_terminal: str = "") -> None:
    """Print a text, after `on_terminal` where the stream is one, and flush it.

    Raises SinkFailed, and BrokenPipeError once nobody reads any more: no failure, the end.
    """
    try:
        before = on_terminal if on_terminal and stream.isatty() else ""
        print(f"{before}{text}", file=stream, flush=True)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise SinkFailed(sink="standard output", problem=str(error)) from error
