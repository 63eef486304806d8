# SPDX-License-Identifier: MIT
"""The image's `pacto` command: finds its commands by entry point, so that no layer imports another.

Called by the console script alone. A command is an entry point of the group `pacto.commands`:
a function that takes the arguments after its name and returns the exit status.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points

from kubectl_pacto import __version__
from kubectl_pacto.errors import MissingNativeParts, PactoError

GROUP = "pacto.commands"
# what an installation off Linux, or from the pure wheel, does not have
NATIVE = frozenset({"pacto_native", "cffi", "_cffi_backend", "elftools"})


def commands() -> dict[str, EntryPoint]:
    """The installed commands by name, not yet imported."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def usage(names: list[str]) -> str:
    """The text of `pacto --help`."""
    return f"usage: pacto {{{','.join(names)}}} ...\n\n`pacto COMMAND --help` says what a command takes.\n"


def run(command: EntryPoint, arguments: list[str]) -> int:
    """Import and call one command; raises MissingNativeParts where this installation lacks them."""
    try:
        return int(command.load()(arguments) or 0)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in NATIVE:
            raise MissingNativeParts(missing=error.name) from error
        raise


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status, 2 for a wrong call, 1 for an error of ours."""
    arguments = sys.argv[1:] if argv is None else argv
    found = commands()
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help"):
        print(usage(sorted(found)), end="")
        return 0
    if name == "--version":
        print(f"pacto {__version__}")
        return 0
    if name not in found:
        print(f"pacto: unknown command {name!r}; one of: {', '.join(sorted(found))}", file=sys.stderr)
        return 2
    try:
        return run(found[name], arguments[1:])
    except PactoError as error:
        print(f"pacto {name}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
