# SPDX-License-Identifier: MIT
"""`pacto agent` as the demo starts it: the installed command, which ends when the demo does."""

from __future__ import annotations

import signal
import sys

from kubectl_pacto.cli.demo import cgroups, linux
from kubectl_pacto.launcher import main as launch


def main(arguments: list[str]) -> int:
    """Take the parent's pid and the cgroup to enter, then be `pacto agent` with the other arguments."""
    linux.die_with(int(arguments[0]), signal.SIGTERM)
    cgroups.enter(arguments[1])
    return launch(["agent", *arguments[2:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
