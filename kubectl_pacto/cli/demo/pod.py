# SPDX-License-Identifier: MIT
"""The process of one pod: its own network namespace, a kubelet-style cgroup, then what it is for.

Started by the demo's node, which stands in for kubelet and runtime: the process first leaves the
node's network, waits to be attached, enters its cgroup last (an agent that looks meanwhile sees no
pod, never one in the node's network), and then serves, idles or calls until it is killed.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kubectl_pacto.cli.demo import cgroups, linux, netlink
from kubectl_pacto.cli.demo.answers import DONE, answer
from kubectl_pacto.cli.demo.fabric import POD_LINK

PREFIX: Final = 24
CALL_SECONDS: Final = 0.5
CALL_TIMEOUT: Final = 0.4
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@dataclass(frozen=True, slots=True)
class Task:
    """What one pod is: `serve` 0 opens no port; `calls` are called twice a second."""

    address: str
    cgroup: str
    ready_file: str
    serve: int = 0
    calls: tuple[tuple[str, int], ...] = ()

    def encode(self) -> str:
        """As one argument of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Task:
        """The inverse of `encode`."""
        raw = json.loads(text)
        return cls(
            address=raw["address"],
            cgroup=raw["cgroup"],
            ready_file=raw["ready_file"],
            serve=raw["serve"],
            calls=tuple((host, port) for host, port in raw["calls"]),
        )


def settle(task: Task) -> None:
    """Leave the node's network, be attached, enter the cgroup; raises OSError."""
    linux.leave_network()
    answer(DONE)
    sys.stdin.readline()
    netlink.set_up("lo")
    netlink.add_address(POD_LINK, task.address, PREFIX)
    netlink.set_up(POD_LINK)
    cgroups.enter(task.cgroup)


def work(task: Task) -> None:
    """Serve, idle or call, for ever; the ready file says that the pod thinks it is up."""
    listener = socket.create_server(("", task.serve)) if task.serve else None
    Path(task.ready_file).touch()
    if listener:
        serve(listener)
    while True:
        for host, port in task.calls:
            call(host, port)
        time.sleep(CALL_SECONDS)


def serve(listener: socket.socket) -> None:
    """Answer every connection, one at a time."""
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(CALL_TIMEOUT)
            connection.recv(4096)
            connection.sendall(ANSWER)


def call(host: str, port: int) -> bool:
    """One request; whether it was answered."""
    try:
        with socket.create_connection((host, port), timeout=CALL_TIMEOUT) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n")
            return bool(connection.recv(4096))
    except OSError:
        return False


def main(arguments: Sequence[str]) -> int:
    """Become the pod that the arguments (parent's pid, task) describe."""
    linux.die_with(int(arguments[0]))
    task = Task.decode(arguments[1])
    try:
        settle(task)
    except OSError as error:
        answer(error.strerror)
        return 1
    answer(DONE)
    work(task)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
