# SPDX-License-Identifier: MIT
"""The commands: python -m tests.kernels run --suite SUITE --root ROOT -- COMMAND..., and tier."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.cluster.layout import ClusterError
from tests.kernels import arm64, debian, machine, page, tier


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tests.kernels", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="fetch kernels into the cache")
    fetch.add_argument("suites", nargs="*", default=list(debian.SUITES))
    run = commands.add_parser("run", help="run a command under another kernel; its exit status is ours")
    run.add_argument("--suite", required=True, choices=list(debian.SUITES))
    run.add_argument("--root", type=Path, required=True, help="a directory with a user space")
    run.add_argument(
        "--add", action="append", default=[], metavar="SOURCE:TARGET", help="copy this into the root"
    )
    run.add_argument("--no-btf", action="store_true", help="a kernel without type information")
    run.add_argument("--lockdown", default="", choices=["", "integrity", "confidentiality"])
    run.add_argument("--memory", type=int, default=2048, help="MiB")
    run.add_argument("--timeout", type=int, default=600, help="seconds")
    run.add_argument("words", nargs="+", metavar="COMMAND")
    whole = commands.add_parser("tier", help="run the kernel tier under other kernels, part by part")
    whole.add_argument("--suite", action="append", choices=list(debian.SUITES), help="default: each")
    whole.add_argument("--write", action="store_true", help=f"put the results into {page.PAGE.name}")
    whole.add_argument("--timeout", type=int, default=1800, help="seconds, for each part")
    whole.add_argument(
        "--arm64", type=Path, metavar="FOLDER", help="of arm64, with the wheel of the release in this folder"
    )
    whole.add_argument("files", nargs="*", metavar="FILE", help="one part of these; default: all, in parts")
    return top


def hold(arguments: argparse.Namespace) -> int:
    """Run the tier; 1 where a test failed, or was skipped without the kernel's cause."""
    if arguments.write and arguments.arm64:
        raise ClusterError(f"--write is for amd64: {page.PAGE.name} says by hand what ran on arm64")
    outcomes, good = [], True
    parts = [tuple(arguments.files)] if arguments.files else tier.parts()
    root = arm64.root(arm64.wheel(arguments.arm64.resolve())) if arguments.arm64 else None
    for suite in arguments.suite or debian.SUITES:
        for part in parts:
            outcome = tier.run(suite, part, timeout=arguments.timeout, echo=True, arm64=root)
            print(outcome.line(), flush=True)
            outcomes.append(outcome)
            good = good and not outcome.failed and not outcome.unexpected()
    if arguments.write:
        page.write(outcomes)
    return 0 if good else 1


def boot(arguments: argparse.Namespace) -> int:
    """Run the command; its exit status."""
    pairs = [word.partition(":") for word in arguments.add]
    result = machine.run(
        machine.Machine(
            suite=arguments.suite,
            root=arguments.root,
            btf=not arguments.no_btf,
            lockdown=arguments.lockdown,
            memory_mib=arguments.memory,
            timeout=arguments.timeout,
            add={target or source: Path(source) for source, _, target in pairs},
        ),
        arguments.words,
        echo=True,
    )
    return result.status


def main() -> int:
    """125 is our own failure, as with timeout(1) and containers: no command ran to its end."""
    arguments = parser().parse_args()
    try:
        if arguments.command == "fetch":
            for suite in arguments.suites:
                print(debian.kernel(suite).directory)
            return 0
        return hold(arguments) if arguments.command == "tier" else boot(arguments)
    except ClusterError as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
