# SPDX-License-Identifier: MIT
"""A small HTTP service that asks redis and postgresql for each answer, in their own protocols.

usage: service REDIS_HOST:PORT POSTGRESQL_HOST:PORT [--port 8080]
"""

import http.server
import pathlib
import socket
import struct
import sys


def connect(target: str) -> socket.socket:
    """A connection, or OSError."""
    host, _, port = target.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=2)


def ping_redis(target: str) -> str:
    """What redis answers to PING."""
    with connect(target) as client:
        client.sendall(b"PING\r\n")
        return client.recv(64).decode().strip()


def ask_postgresql(target: str) -> str:
    """The first message that postgresql answers to a startup: R, it wants or grants authentication."""
    words = b"user\0postgres\0database\0postgres\0\0"
    with connect(target) as client:
        client.sendall(struct.pack(">ii", len(words) + 8, 196608) + words)
        return client.recv(1).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Every path is the same page."""

    def do_GET(self) -> None:
        """200 where both stores answered, 503 where one did not."""
        try:
            told, status = f"{ping_redis(sys.argv[1])} {ask_postgresql(sys.argv[2])}\n", 200
        except OSError as error:
            told, status = f"{error}\n", 503
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told.encode())

    def log_message(self, *_: object) -> None:
        """Nothing: the kernel is asked."""


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler)
    pathlib.Path("/tmp/ready").touch()
    server.serve_forever()
