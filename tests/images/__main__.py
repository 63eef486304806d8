# SPDX-License-Identifier: MIT
"""The command: python -m tests.images runtime|workloads|servers|root."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.cluster.layout import ClusterError
from tests.images import runtime, workloads

MAKERS: Final[dict[str, Callable[[], Path]]] = {
    "runtime": runtime.archive,
    "workloads": workloads.small_archive,
    "servers": workloads.real_archive,
    "root": runtime.directory,
    "wheels": runtime.wheels,
}


def main() -> int:
    """Make what is asked for unless it is cached, and print where it is."""
    parser = argparse.ArgumentParser(prog="python -m tests.images", description=__doc__)
    parser.add_argument("what", choices=sorted(MAKERS))
    try:
        print(MAKERS[parser.parse_args().what]())
    except ClusterError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
