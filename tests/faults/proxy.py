# SPDX-License-Identifier: MIT
"""A small proxy between an operator and the real API server, which can be told to misbehave.

Plain HTTP on loopback towards the operator; towards the server TLS, as the operator's ServiceAccount.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from tests.cluster.api import Api

HOP_BY_HOP: Final = frozenset({"connection", "transfer-encoding", "content-length", "host", "authorization"})
GONE: Final = {
    "type": "ERROR",
    "object": {"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired", "message": "too old"},
}
STALL_POLL: Final = 0.2


class FaultyProxy:
    """`mode` is what it does now: `pass`, `stall` (watches are open and silent), `gone`, or a status code."""

    def __init__(self, api: Api) -> None:
        """Listens from here on; nothing is forwarded before `start`."""
        self.api = api
        self.mode = "pass"
        self.counts: dict[str, int] = {}
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more; open streams end with the process."""
        self._server.shutdown()
        self._server.server_close()

    def count(self, what: str) -> None:
        """How often it did something."""
        self.counts[what] = self.counts.get(what, 0) + 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """An operator that ends breaks its connections: no news."""


class _Handler(BaseHTTPRequestHandler):
    owner: FaultyProxy
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        mode = self.owner.mode
        is_watch = "watch=1" in self.path or "watch=true" in self.path
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else None
        self.owner.count(f"{mode} {'watch' if is_watch else 'request'}")
        if mode.isdigit():
            self._refuse(int(mode))
            return
        api = self.owner.api
        upstream = http.client.HTTPSConnection(api.host, api.port, context=api.tls, timeout=700)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in HOP_BY_HOP}
        headers["Authorization"] = f"Bearer {api.token}"
        with contextlib.closing(upstream), contextlib.suppress(OSError, http.client.HTTPException):
            upstream.request(self.command, self.path, body=body, headers=headers)
            answer = upstream.getresponse()
            if is_watch and answer.status == http.client.OK:
                self._stream(answer)
            else:
                self._whole(answer.status, answer.headers.get("Content-Type", ""), answer.read())
            return
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - the names http.server calls

    def _refuse(self, status: int) -> None:
        body = {
            "kind": "Status",
            "status": "Failure",
            "code": status,
            "message": "by the proxy",
            "reason": "",
        }
        more = {"Retry-After": "1"} if status in (429, 503) else {}
        self._whole(status, "application/json", json.dumps(body).encode(), **more)

    def _whole(self, status: int, kind: str, body: bytes, **more: str) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        """Event by event, until it ends or the mode says otherwise."""
        self.send_response(http.client.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        lines = _Lines(answer)
        while not lines.ended:
            mode = self.owner.mode
            if mode == "gone":
                self._piece(json.dumps(GONE).encode() + b"\n")
                break
            if mode == "stall":
                # half open: what the server says is lost, and nobody closes the connection
                lines.take()
                time.sleep(STALL_POLL)
                continue
            if mode.isdigit():
                break
            for line in lines.take():
                self._piece(line)
            time.sleep(0.02)
        self._piece(b"")

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _Lines:
    """The lines of an answer as they come, read in a thread of their own."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.ended = False
        self._found: list[bytes] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._read, args=(answer,), daemon=True).start()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while line := answer.readline():
                with self._lock:
                    self._found.append(line)
        self.ended = True

    def take(self) -> list[bytes]:
        """What came since the last time."""
        with self._lock:
            found, self._found = self._found, []
        return found
