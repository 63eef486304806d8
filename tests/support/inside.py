# SPDX-License-Identifier: MIT
"""A process that plays a part of a pod: it runs the pieces of Python that a test sends it.

Started by hosts.Host, as a script, in a cgroup and a network namespace of its own; standard library
only. One line of JSON in (the source), one out (its value, or the traceback). What is defined here
is at hand for those pieces. Sockets are known by the inode of their file, and stay open until closed.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
IPPROTO_MPTCP = 262
TCP_FASTOPEN_CONNECT = 30

KEPT: dict[int, socket.socket] = {}

_libc = ctypes.CDLL(None, use_errno=True)


def _or_raise(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def new_netns() -> int:
    """Move this process into a new network namespace with its loopback up; returns its inode."""
    _or_raise(_libc.unshare(CLONE_NEWNET), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = struct.pack("16sH", b"lo", 0)
        flags = struct.unpack("16sH", fcntl.ioctl(any_socket, SIOCGIFFLAGS, name))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH", b"lo", flags | IFF_UP))
    return netns()


def enter_netns(pid: int) -> int:
    """Move this process into the network namespace of another; returns its inode."""
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _or_raise(_libc.setns(descriptor, CLONE_NEWNET), "setns")
    finally:
        os.close(descriptor)
    return netns()


def netns() -> int:
    """The inode of this process's network namespace."""
    return Path("/proc/self/ns/net").stat().st_ino


def join(group: str) -> None:
    """Move this process into a cgroup directory."""
    Path(group, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def sysctl(name: str, value: str) -> None:
    """Set one of this namespace's settings."""
    Path("/proc/sys/net", name).write_text(value, encoding="ascii")


def ip(words: str) -> None:
    """Run iproute2's ip."""
    subprocess.run(["ip", *words.split()], check=True)


def keep(one: socket.socket) -> int:
    """Hold a socket open until closed by its inode, which is returned."""
    inode = os.fstat(one.fileno()).st_ino
    KEPT[inode] = one
    return inode


def close(*inodes: int) -> None:
    """Close kept sockets."""
    for inode in inodes:
        KEPT.pop(inode).close()


def close_all() -> None:
    """Close every kept socket."""
    close(*KEPT)


def fresh(host: str, protocol: int = 0) -> socket.socket:
    """A new TCP socket of the family that the address is of."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.socket(family, socket.SOCK_STREAM, protocol)


def listen(
    host: str,
    port: int = 0,
    *,
    backlog: int = 64,
    v6only: bool | None = None,
    reuse_port: bool = False,
    protocol: int = 0,
) -> int:
    """Listen and keep; returns the socket's inode."""
    one = fresh(host, protocol)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if v6only is not None:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    if reuse_port:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((host, port))
    one.listen(backlog)
    return keep(one)


def port(inode: int) -> int:
    """The local port of a kept socket."""
    return int(KEPT[inode].getsockname()[1])


def connect(host: str, number: int, *, timeout: float = 20.0, protocol: int = 0) -> int:
    """Connect once and close; returns 0 or the errno, ETIMEDOUT also where the caller gave up."""
    with fresh(host, protocol) as one:
        one.setblocking(False)
        result = one.connect_ex((host, number))
        if result == errno.EINPROGRESS:
            if not select.select([], [one], [], timeout)[1]:
                return errno.ETIMEDOUT
            result = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return result


def open_connection(host: str, number: int, *, protocol: int = 0) -> int:
    """Connect and keep; returns the socket's inode."""
    one = fresh(host, protocol)
    one.settimeout(20)
    one.connect((host, number))
    return keep(one)


def start_connecting(host: str, number: int, *, protocol: int = 0) -> int:
    """Send a SYN, wait for nothing, keep; returns the socket's inode."""
    one = fresh(host, protocol)
    one.setblocking(False)
    result = one.connect_ex((host, number))
    if result != errno.EINPROGRESS:
        raise OSError(result, os.strerror(result))
    return keep(one)


def connect_many(host: str, number: int, count: int) -> int:
    """Connect and close `count` times, resetting so that no port stays taken; returns successes."""
    good = 0
    linger = struct.pack("ii", 1, 0)
    for _ in range(count):
        with fresh(host) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            good += one.connect_ex((host, number)) == 0
    return good


def serve(host: str, number: int = 0, **options: Any) -> int:
    """Listen, and let a child process accept and close whatever comes; returns the inode."""
    inode = listen(host, number, **options)
    server = KEPT[inode]
    if os.fork() == 0:
        while True:
            server.accept()[0].close()
    return inode


def black_hole(host: str = "127.0.0.1") -> int:
    """A listener whose queue is full, so that the kernel drops every SYN; returns its port."""
    inode = listen(host, 0, backlog=0)
    number = port(inode)
    open_connection(host, number)
    return number


def child(source: str) -> int:
    """Fork a child that runs `source` and then sleeps until killed; returns its pid when it ran."""
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        exec(source, globals())
        os.write(done, b"1")
        while True:
            time.sleep(3600)
    os.close(done)
    if os.read(ready, 1) != b"1":
        raise RuntimeError(f"the child failed: {source}")
    os.close(ready)
    return pid


def end(pid: int, number: int = 9) -> None:
    """Kill a child of this process and wait for it."""
    os.kill(pid, number)
    os.waitpid(pid, 0)


def send_socket(path: str, inode: int) -> None:
    """Pass a kept socket through a unix socket to whoever waits in receive_socket()."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as way:
        way.connect(path)
        socket.send_fds(way, [b"x"], [KEPT[inode].fileno()])


def wait_for_socket(path: str) -> int:
    """Listen on a unix socket, kept, for send_socket()."""
    way = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    way.bind(path)
    way.listen(1)
    return keep(way)


def receive_socket(way: int) -> int:
    """The socket that was sent, kept; returns its inode."""
    with KEPT[way].accept()[0] as connection:
        numbers = array.array("i", socket.recv_fds(connection, 1, 1)[1])
    return keep(socket.socket(fileno=numbers[0]))


def main() -> None:
    """Serve pieces of source until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        source = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            try:
                code = compile(source, "<test>", "eval")
            except SyntaxError:
                exec(source, globals())
                answer["value"] = None
            else:
                answer["value"] = eval(code, globals())
        except BaseException:  # whatever it is, the test must see it
            answer["error"] = traceback.format_exc()
        print(json.dumps(answer), file=replies, flush=True)


if __name__ == "__main__":
    main()
