# SPDX-License-Identifier: MIT
"""The command line of `pacto agent` and `pacto operator`: argparse, whose errors are one line each.

Used by both; the plugin has click. Flags are never guessed from their beginnings.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final, NoReturn

WIDTH: Final = 80


class Parser(argparse.ArgumentParser):
    """A parser whose errors name flag and remedy without the whole usage before them."""

    def __init__(self, prog: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog or None,
            formatter_class=_formatter,
            allow_abbrev=False,
        )

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """As argparse, but of what it does not know it says which flag may be meant."""
        values, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown argument {unknown[0]}{self._meant(unknown[0])}")
        return values

    def _meant(self, given: str) -> str:
        from difflib import get_close_matches  # costs an agent memory, and most are called rightly

        close = get_close_matches(given.partition("=")[0], list(self._option_string_actions), 1)
        return f" (did you mean {close[0]}?)" if close else ""

    def error(self, message: str) -> NoReturn:
        """Say it in one line and end with status 2."""
        words = message.removeprefix("argument ")
        self.exit(2, f"{self.prog}: {words}; `{self.prog} --help` lists the options\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """argparse's own, told its width: to find that out it loads the archive formats of shutil."""
    return argparse.HelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or WIDTH
    except ValueError:
        pass
    try:
        return os.get_terminal_size().columns or WIDTH
    except OSError:  # no terminal
        return WIDTH
