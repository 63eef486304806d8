# SPDX-License-Identifier: MIT
"""The process that holds the demo's bridge, in a network namespace with no way out of it.

Started by the demo's node. It is told one process a line and answers each with a line: a veth pair
from that process's namespace to the bridge is there, or what went wrong. Its namespace, the bridge
and all pairs are gone when it ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from kubectl_pacto.cli.demo import cgroups, linux, netlink

BRIDGE: Final = "pods"
POD_LINK: Final = "eth0"
DONE: Final = "ok"


def serve(bridge: int, requests: Iterable[str], answers: TextIO) -> None:
    """Attach the processes that `requests` names until it ends."""
    for position, line in enumerate(requests):
        try:
            netlink.make_veth(f"veth{position}", master=bridge, peer=POD_LINK, peer_pid=int(line))
        except OSError as error:
            print(error.strerror, file=answers, flush=True)
        else:
            print(DONE, file=answers, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run until standard input ends; the arguments are the parent's pid and the cgroup to enter."""
    linux.die_with(int(arguments[0]))
    try:
        cgroups.enter(arguments[1])
        linux.leave_network()
        bridge = netlink.make_bridge(BRIDGE)
    except OSError as error:
        print(error.strerror, flush=True)
        return 1
    print(DONE, flush=True)
    serve(bridge, sys.stdin, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
