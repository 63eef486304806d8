# SPDX-License-Identifier: MIT
"""A small Kubernetes API on loopback: objects with resource versions, and faults on order.

Real HTTP, so that what is tested is the transport too. It stores any namespaced object by its path.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubectl_pacto.kube.transport import Server

METADATA_ONLY = "PartialObjectMetadata"


@dataclass
class Fault:
    """What happens to the next request: an answer of `status`, or a connection that ends or hangs."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False  # after the request was carried out
    hang_seconds: float = 0.0


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    accept: str
    token: str
    client: int = 0  # the port that it came from: one per connection


class FakeApi:
    """The state behind the server; change it between requests."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.faults: deque[Fault] = deque()
        self.seen: list[Seen] = []
        self.tokens: set[str] = set()  # empty: anybody may ask
        self.version = 100
        self.server = Server("127.0.0.1", 0, tls=False)

    def put(self, path: str, raw: dict[str, Any]) -> dict[str, Any]:
        """Store an object under a new version, as somebody else would."""
        self.version += 1
        stored = {**raw, "metadata": {**raw.get("metadata", {}), "resourceVersion": str(self.version)}}
        self.objects[path] = stored
        return stored

    def count(self, method: str = "") -> int:
        """How many requests came, of one method or of all."""
        return sum(not method or one.method == method for one in self.seen)

    def answer(self, method: str, path: str, accept: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        """What a real API server would say."""
        status, found = self._answer(method, path, body)
        if status < 300 and METADATA_ONLY in accept:
            return status, {"kind": METADATA_ONLY, "metadata": found["metadata"]}
        return status, found

    def _answer(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        found = self.objects.get(path)
        if method == "POST" and body is not None:
            path = f"{path}/{body['metadata']['name']}"
            return (409, _status("already exists")) if path in self.objects else (201, self.put(path, body))
        if found is None:
            return 404, _status(f"{path} not found")
        if method == "PUT" and body is not None:
            if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                return 409, _status("the object has been modified")
            return 200, self.put(path, body)
        return 200, found


def _status(message: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "message": message}


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one segment, or each answer waits for a delayed acknowledgement

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has the name
            """Nothing: the test says what matters."""

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            accept = self.headers.get("Accept", "")
            api.seen.append(Seen(self.command, self.path, accept, token, self.client_address[1]))
            fault = api.faults.popleft() if api.faults else Fault()
            if fault.hang_seconds:
                time.sleep(fault.hang_seconds)
            if fault.status:
                self._send(fault.status, _status(f"fault {fault.status}"), fault.headers)
                return
            if api.tokens and token not in api.tokens:
                self._send(401, _status("Unauthorized"), {})
                return
            status, answer = api.answer(self.command, self.path, accept, body)
            if fault.hang_up:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._send(status, answer, {})

        def _send(self, status: int, answer: object, headers: dict[str, str]) -> None:
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = _serve  # noqa: N815 - the base class looks for these names

    return Handler


@contextmanager
def serve(api: FakeApi) -> Iterator[Server]:
    """Run the server on a port of its own until the block ends."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    api.server = Server("127.0.0.1", http.server_address[1], tls=False)
    try:
        yield api.server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
