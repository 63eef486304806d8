# SPDX-License-Identifier: MIT
"""The system calls that Python 3.11 does not offer: a network namespace of one's own, and dying in time.

Called by the demo's child processes alone, before they do anything else.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

CLONE_NEWNET: Final = 0x40000000
PR_SET_PDEATHSIG: Final = 1


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _or_raise(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def leave_network() -> None:
    """Move this process into a network namespace of its own; raises OSError."""
    _or_raise(_libc().unshare(CLONE_NEWNET), "unshare(CLONE_NEWNET)")


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Get `number` when the process `parent`, which started this one, ends; exits if it has already."""
    _or_raise(_libc().prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    # it may have ended before the call: then nobody is left to want this process
    if os.getppid() != parent:
        raise SystemExit(1)
