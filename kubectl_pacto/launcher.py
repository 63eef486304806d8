# SPDX-License-Identifier: MIT
"""The image's `pacto` command: finds its commands by entry point, so that no layer imports another.

Called by the console script alone. A command is an entry point of the group `pacto.commands`: a function
that takes the arguments after its name and returns the exit status; only the one that is called is
imported. The standard library's reader of entry points would cost each agent 3 MiB for as long as it lives.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Final

from kubectl_pacto import __version__
from kubectl_pacto.errors import MissingNativeParts, PactoError, SinkFailed

GROUP: Final = "pacto.commands"
METADATA: Final = (".dist-info", ".egg-info")
# what an installation off Linux, or from the pure wheel, does not have
NATIVE = frozenset({"pacto_native", "cffi", "_cffi_backend", "elftools"})


def commands() -> dict[str, str]:
    """MODULE:FUNCTION of each installed command by name; the first on the path counts, as for modules."""
    found: dict[str, str] = {}
    for folder in sys.path:
        for name, target in _offered(folder or os.curdir):
            found.setdefault(name, target)
    return found


def _offered(folder: str) -> Iterator[tuple[str, str]]:
    try:
        distributions = sorted(name for name in os.listdir(folder) if name.endswith(METADATA))  # noqa: PTH208
    except OSError:  # an archive, or nothing
        return
    for distribution in distributions:
        group = ""
        for line in _lines(f"{folder}/{distribution}/entry_points.txt"):
            if line.startswith("["):
                group = line.strip("[]")
            elif group == GROUP and "=" in line:
                name, _, target = line.partition("=")
                yield name.strip(), target.strip()


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not the agent's
            return [line.strip() for line in file]
    except OSError:  # most distributions have none
        return []


def usage(names: list[str]) -> str:
    """The text of `pacto --help`."""
    return f"usage: pacto {{{','.join(names)}}} ...\n\n`pacto COMMAND --help` says what a command takes.\n"


def run(target: str, arguments: list[str]) -> int:
    """Import and call one command; raises MissingNativeParts where this installation lacks them."""
    module, _, function = target.partition(":")
    try:
        return int(getattr(import_module(module), function)(arguments) or 0)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in NATIVE:
            raise MissingNativeParts(missing=error.name) from error
        raise


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status, 2 for a wrong call, 1 for an error of ours."""
    arguments = sys.argv[1:] if argv is None else argv
    name = arguments[0] if arguments else "--help"
    return guarded(f"pacto {name}", lambda: _call(name, arguments[1:]))


def _call(name: str, arguments: list[str]) -> int:
    found = commands()
    if name in ("-h", "--help"):
        print(usage(sorted(found)), end="")
        return 0
    if name == "--version":
        print(f"pacto {__version__}")
        return 0
    if name not in found:
        print(f"pacto: unknown command {name!r}; one of: {', '.join(sorted(found))}", file=sys.stderr)
        return 2
    return run(found[name], arguments)


def guarded(program: str, command: Callable[[], int]) -> int:
    """Call a command; returns its exit status: 130 interrupted, 141 when nobody reads its output any more."""
    try:
        status = _ended(command)
        if sys.stdout is not None:  # closed by the caller
            _flush()
    except PactoError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        from kubectl_pacto.streams import READER_GONE, leave_quiet  # an agent holds it for nothing

        leave_quiet()
        return READER_GONE
    return status


def _ended(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as stop:  # argparse's, after its help and its errors
        return stop.code if isinstance(stop.code, int) else int(bool(stop.code))


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from kubectl_pacto.streams import leave_quiet

        leave_quiet()
        raise SinkFailed(sink="standard output", problem=error.strerror or str(error)) from error
