# SPDX-License-Identifier: MIT
"""SIGTERM and SIGINT as an event, for a process that runs until it is told to stop: operator and agent."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType


def set_when_told(stop: threading.Event) -> None:
    """Set `stop` at SIGTERM and SIGINT, by a thread of its own. Called by the main thread.

    A handler runs between any two steps of the main thread, which may hold the very lock that set() takes:
    both would wait for ever. To write into a pipe takes none.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        with suppress(BlockingIOError):  # full: it has been told often enough
            os.write(writing, b"!")

    def wait() -> None:
        os.read(reading, 1)
        stop.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
