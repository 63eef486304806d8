# SPDX-License-Identifier: MIT
"""Connects to several targets in turn, for a while or for ever; as a pool keeps its connections.

usage: caller TARGET... [--every SECONDS] [--for SECONDS] [--pool SIZE] [--retry]

With --pool the connections stay open and are replaced when they break. With --retry a round ends at the
first target that answers, as a client does that knows several endpoints. SIGUSR1 makes it pause.
"""

import argparse
import contextlib
import pathlib
import signal
import socket
import time

PAUSED = [False]


def connect(target: str) -> socket.socket | None:
    """One attempt."""
    host, _, port = target.rpartition(":")
    try:
        return socket.create_connection((host, int(port)), timeout=2)
    except OSError as error:
        print("failed", target, error, flush=True)
        return None


def spread(target: str) -> list[str]:
    """HOST:PORT+COUNT is so many ports."""
    host, _, port = target.rpartition(":")
    first, _, count = port.partition("+")
    return [f"{host}:{int(first) + number}" for number in range(int(count or 1))]


def is_open(connection: socket.socket) -> bool:
    """Whether the other side still holds its end; a word now and then keeps it from giving up."""
    connection.setblocking(False)
    try:
        connection.send(b".")
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def main() -> None:
    """As the usage says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--every", type=float, default=0.7)
    parser.add_argument("--for", dest="seconds", type=float, default=1e9)
    parser.add_argument("--pool", type=int, default=0)
    parser.add_argument("--retry", action="store_true")
    options = parser.parse_args()
    options.targets = [one for target in options.targets for one in spread(target)]
    signal.signal(signal.SIGUSR1, lambda *_: PAUSED.__setitem__(0, not PAUSED[0]))
    pathlib.Path("/tmp/ready").touch()
    pool: list[tuple[str, socket.socket]] = []
    end = time.monotonic() + options.seconds
    while True:
        if time.monotonic() < end and not PAUSED[0]:
            pool = [(target, one) for target, one in pool if is_open(one)]
            for target in options.targets:
                if options.pool and sum(known == target for known, _ in pool) >= options.pool:
                    continue
                made = connect(target)
                if made is not None and options.pool:
                    pool.append((target, made))
                elif made is not None:
                    with contextlib.suppress(OSError):
                        made.close()
                if made is not None and options.retry:
                    break
        time.sleep(options.every)


if __name__ == "__main__":
    main()
