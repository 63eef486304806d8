# SPDX-License-Identifier: MIT
"""`pacto agent`: options, signals, and the agent's life between them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from pacto_agent.config import Options, parse
from pacto_agent.publish import Sink


def make_sink(options: Options) -> Sink:
    """The sink that the options name; only its module is imported."""
    if options.sink == "file":
        from pacto_agent.sinks.file import FileSink

        return FileSink(options.output)
    from pacto_agent.sinks.stdout import StdoutSink

    return StdoutSink(sys.stdout)


def main(argv: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT; returns 0."""
    options = parse(argv)
    from pacto_agent.agent import Agent

    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    agent = Agent(options, make_sink(options), stop)
    try:
        agent.open()
        agent.run()
    finally:
        agent.close()
    return 0
