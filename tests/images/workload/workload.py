#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What runs in a test pod: small servers, a client, and a process that only looks ready.

usage: workload http|tcp|tls|h2c [--port 8080] [--address ::] [--after SECONDS]
       workload silent
       workload client HOST:PORT [--every SECONDS] [--hold] [--timeout SECONDS]

Standard library only. Every server prints `listening ADDRESS PORT` once it listens; SIGUSR1 closes
the listening socket and SIGUSR2 opens it again, without the process ending.
"""

import argparse
import contextlib
import pathlib
import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable

READY = pathlib.Path("/tmp/ready")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME = 9
DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def answer_http(client: socket.socket) -> None:
    """One HTTP/1.1 answer with this pod's name; other protocols' first bytes get a 400."""
    request = client.recv(65536)
    line = request.split(b"\r\n", 1)[0]
    good = line.endswith((b"HTTP/1.1", b"HTTP/1.0")) and not request.startswith(b"PRI ")
    status = b"200 OK" if good else b"400 Bad Request"
    body = socket.gethostname().encode() + b"\n"
    head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body))
    client.sendall(head + body)


def answer_tcp(client: socket.socket) -> None:
    """An echo: neither HTTP nor TLS."""
    while data := client.recv(65536):
        client.sendall(b"echo " + data)


def answer_tls(client: socket.socket) -> None:
    """HTTP behind TLS; a client that speaks something else gets TLS's own alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/usr/local/share/workload/tls.crt", "/usr/local/share/workload/tls.key")
    with contextlib.suppress(ssl.SSLError), context.wrap_socket(client, server_side=True) as secured:
        answer_http(secured)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def exactly(client: socket.socket, size: int) -> bytes:
    """So many bytes, or an end."""
    data = b""
    while len(data) < size:
        chunk = client.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def answer_h2c(client: socket.socket) -> None:
    """HTTP/2 with prior knowledge: settings, and status 200 to every request."""
    if exactly(client, len(PREFACE)) != PREFACE:
        return
    client.sendall(frame(SETTINGS, 0, 0))
    while True:
        head = exactly(client, FRAME)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big")
        payload = exactly(client, size)
        if kind == SETTINGS and not flags & ACK:
            client.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            client.sendall(frame(PING, ACK, 0, payload))
        elif kind == HEADERS:
            # 0x88: `:status: 200` of the static table
            client.sendall(
                frame(HEADERS, END_HEADERS, stream, b"\x88") + frame(DATA, END_STREAM, stream, b"ok\n")
            )


ANSWERS: dict[str, Callable[[socket.socket], None]] = {
    "http": answer_http,
    "tcp": answer_tcp,
    "tls": answer_tls,
    "h2c": answer_h2c,
}


def handle(client: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    """One connection; what goes wrong in it ends it and nothing else."""
    with contextlib.suppress(OSError, EOFError), client:
        client.settimeout(60)
        answer(client)


class Server:
    """A listening socket that can be closed and opened again while the process stays."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Nothing is open yet."""
        self.options = options
        self.listener: socket.socket | None = None

    def open(self, *_: object) -> None:
        """Listen."""
        if self.listener is not None:
            return
        family = socket.AF_INET6 if ":" in self.options.address else socket.AF_INET
        dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        self.listener = socket.create_server(
            (self.options.address, self.options.port), family=family, dualstack_ipv6=dual, backlog=128
        )
        self.listener.settimeout(0.2)
        print("listening", *self.listener.getsockname()[:2], flush=True)
        READY.touch()

    def close(self, *_: object) -> None:
        """Stop listening."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None
            print("closed", flush=True)

    def run(self) -> None:
        """Accept for ever."""
        time.sleep(self.options.after)
        signal.signal(signal.SIGUSR1, self.close)
        signal.signal(signal.SIGUSR2, self.open)
        self.open()
        while True:
            try:
                client, _ = self.listener.accept() if self.listener else (None, None)
            except OSError:
                continue
            if client is None:
                time.sleep(0.2)
                continue
            threading.Thread(target=handle, args=(client, ANSWERS[self.options.command]), daemon=True).start()


def silent() -> None:
    """Ready to an exec probe (`test -e /tmp/ready`) and never listening."""
    READY.touch()
    print("silent", flush=True)
    while True:
        time.sleep(3600)


def connect(host: str, port: int, options: argparse.Namespace) -> str:
    """One attempt; what came of it."""
    try:
        client = socket.create_connection((host, port), timeout=options.timeout)
    except OSError as error:
        return f"failed {type(error).__name__}"
    if options.hold:
        time.sleep(10**6)
    client.close()
    return "connected"


def run_client(options: argparse.Namespace) -> None:
    """Connect again and again, one line each."""
    READY.touch()
    host, _, port = options.target.rpartition(":")
    while True:
        print(connect(host.strip("[]"), int(port), options), flush=True)
        time.sleep(options.every)


def main() -> None:
    """As the usage says."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ANSWERS:
        server = commands.add_parser(name)
        server.add_argument("--port", type=int, default=8080)
        server.add_argument("--address", default="0.0.0.0")
        server.add_argument("--after", type=float, default=0)
    commands.add_parser("silent")
    client = commands.add_parser("client")
    client.add_argument("target")
    client.add_argument("--every", type=float, default=1)
    client.add_argument("--timeout", type=float, default=3)
    client.add_argument("--hold", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if options.command == "client":
        run_client(options)
    elif options.command == "silent":
        silent()
    else:
        Server(options).run()


if __name__ == "__main__":
    main()
