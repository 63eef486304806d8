# SPDX-License-Identifier: MIT
"""How the demo's own processes answer the demo that started them, one line each on standard output."""

from __future__ import annotations

import os
from typing import Final

DONE: Final = "ok"


def answer(line: str | None) -> None:
    """Say a line; a demo that was interrupted reads no more, and the process ends without a word."""
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        raise SystemExit(1) from None
