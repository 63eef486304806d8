# SPDX-License-Identifier: MIT
"""The image's `pacto` command: knows its commands by name alone, so that no layer imports another.

Called by the console script alone. A command is a module whose main() takes the arguments after its
name and returns the exit status; only the one that is called is imported. Not by entry point: to look
those up costs each agent 3 MiB for as long as it lives.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from kubectl_pacto import __version__
from kubectl_pacto.errors import MissingNativeParts, PactoError

COMMANDS: Final = {"agent": "pacto_agent.run", "operator": "kubectl_pacto.controller.run"}
# what an installation off Linux, or from the pure wheel, does not have
NATIVE = frozenset({"pacto_native", "cffi", "_cffi_backend", "elftools"})


def usage(names: list[str]) -> str:
    """The text of `pacto --help`."""
    return f"usage: pacto {{{','.join(names)}}} ...\n\n`pacto COMMAND --help` says what a command takes.\n"


def run(module: str, arguments: list[str]) -> int:
    """Import and call one command's module; raises MissingNativeParts where this installation lacks them."""
    try:
        return int(import_module(module).main(arguments) or 0)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in NATIVE:
            raise MissingNativeParts(missing=error.name) from error
        raise


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status, 2 for a wrong call, 1 for an error of ours."""
    arguments = sys.argv[1:] if argv is None else argv
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help"):
        print(usage(sorted(COMMANDS)), end="")
        return 0
    if name == "--version":
        print(f"pacto {__version__}")
        return 0
    if name not in COMMANDS:
        print(f"pacto: unknown command {name!r}; one of: {', '.join(sorted(COMMANDS))}", file=sys.stderr)
        return 2
    try:
        return run(COMMANDS[name], arguments[1:])
    except PactoError as error:
        print(f"pacto {name}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
