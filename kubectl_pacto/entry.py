# SPDX-License-Identifier: MIT
"""Where the console script starts: an interrupt ends the plugin without a word, from its first import on.

Until the front door stands, and once it has closed, the kernel's own handling ends the process (the shell
says 130, as for kubectl): an interrupt within an import would otherwise print a traceback.
"""

from __future__ import annotations

import signal
import sys


def complete() -> int:
    """Complete the words given, as kubectl asks; returns the exit status."""
    sys.argv.insert(1, "__complete")
    return main()


def main() -> int:
    """Run the plugin; returns its exit status."""
    # where a shell has told its background jobs to ignore interrupts, that stays so
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kubectl_pacto.cli.main import INTERRUPTED
    from kubectl_pacto.cli.main import main as run

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
