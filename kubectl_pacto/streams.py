# SPDX-License-Identifier: MIT
"""A standard output that nobody reads any more (`COMMAND | head -1`): how a command ends then, and quietly.

Used by the front doors of the plugin and of `pacto`, and by the commands of the node agent that print until
they are stopped.
"""

from __future__ import annotations

import os
import sys
from typing import Final

READER_GONE: Final = 141  # as a shell says of a process that SIGPIPE ended, and as kubectl ends


def leave_quiet() -> None:
    """Send what the broken ones of stdout and stderr still hold nowhere.

    The interpreter flushes both once more at exit and would complain again about the one that is broken.
    """
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                os.dup2(sink, stream.fileno())
    os.close(sink)
