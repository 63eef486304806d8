# SPDX-License-Identifier: MIT
"""Where the console script starts: an interrupt ends the plugin without a word, from its first import on.

Until the front door stands, and once it has closed, the kernel's own handling ends the process (the shell
says 130, as for kubectl): an interrupt within an import would otherwise print a traceback.

Between them Python raises KeyboardInterrupt wherever it happens to be. In a finalizer or in a callback of a
weak reference, as each import has one, it drops what is raised: the kernel's handling ends the process then
too, which would go on as if nobody had interrupted it.
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

    dropped = sys.unraisablehook
    try:
        if ours:
            sys.unraisablehook = _end_if_interrupted
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            sys.unraisablehook = dropped


def _end_if_interrupted(dropped: sys.UnraisableHookArgs) -> None:
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    sys.__unraisablehook__(dropped)
