# SPDX-License-Identifier: MIT
"""SIGTERM and SIGINT as an event, for a process that runs until it is told to stop: operator and agent."""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue
from types import FrameType


def set_when_told(stop: threading.Event) -> None:
    """Set `stop` at SIGTERM and SIGINT, by a thread of its own. Called by the main thread.

    A handler runs between any two steps of the main thread, which may hold the very lock that set() takes:
    both would wait for ever. What a handler puts into a SimpleQueue takes none.
    """
    told: SimpleQueue[int] = SimpleQueue()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        told.put(number)

    def wait() -> None:
        told.get()
        stop.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
