# SPDX-License-Identifier: MIT
"""The process that holds the demo's bridge, in a network namespace with no way out of it.

Started by the demo's node. It is told one process a line and answers each with a line: a veth pair
from that process's namespace to the bridge is there, or what went wrong. Its namespace, the bridge
and all pairs are gone when it ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_pacto.cli.demo import cgroups, linux, netlink
from kubectl_pacto.cli.demo.answers import DONE, answer

BRIDGE: Final = "pods"
POD_LINK: Final = "eth0"


def serve(bridge: int, requests: Iterable[str]) -> None:
    """Attach the processes that `requests` names until it ends."""
    for position, line in enumerate(requests):
        try:
            netlink.make_veth(f"veth{position}", master=bridge, peer=POD_LINK, peer_pid=int(line))
        except OSError as error:
            answer(error.strerror)
        else:
            answer(DONE)


def main(arguments: Sequence[str]) -> int:
    """Run until standard input ends; the arguments are the parent's pid and the cgroup to enter."""
    linux.die_with(int(arguments[0]))
    try:
        cgroups.enter(arguments[1])
        linux.leave_network()
        bridge = netlink.make_bridge(BRIDGE)
    except OSError as error:
        answer(error.strerror)
        return 1
    answer(DONE)
    serve(bridge, sys.stdin)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
