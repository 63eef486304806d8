# SPDX-License-Identifier: MIT
"""A small Kubernetes API that lists in pages and watches, over real HTTP, with faults on order.

One collection; its history is kept so that a watch can start anywhere, until `compact` forgets it.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubectl_pacto.kube.transport import Server

Raw = dict[str, Any]


@dataclass
class WatchFault:
    """What happens to the next watch: a status, an ERROR event, silence, or an end at once."""

    status: int = 0
    error: int = 0
    silent: bool = False
    ends: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class FakeWatchApi:
    """The collection behind the server; changed by the test, from any thread."""

    def __init__(self) -> None:
        self.server = Server("127.0.0.1", 0, tls=False)
        self.changed = threading.Condition()
        self.items: dict[str, Raw] = {}
        self.history: list[tuple[int, str, Raw]] = []
        self.version = 100
        self.oldest = 0
        self.list_faults: deque[int] = deque()
        self.page_faults: deque[int] = deque()  # of requests with a continue token
        self.watch_faults: deque[WatchFault] = deque()
        self.tokens: set[str] = set()
        self.lists: list[dict[str, str]] = []
        self.watches: list[dict[str, str]] = []
        self.closed = False
        self._pages: dict[str, tuple[list[Raw], int]] = {}

    def put(self, name: str, **spec: Any) -> None:
        """Create or change an object."""
        with self.changed:
            self.version += 1
            kind = "MODIFIED" if name in self.items else "ADDED"
            metadata = {"name": name, "namespace": "ns", "resourceVersion": str(self.version)}
            self.items[name] = {"metadata": {**metadata, "managedFields": [{}]}, "spec": spec}
            self._tell(kind, self.items[name])

    def delete(self, name: str) -> None:
        """Delete an object."""
        with self.changed:
            self.version += 1
            gone = self.items.pop(name)
            metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
            self._tell("DELETED", {**gone, "metadata": metadata})

    def bookmark(self) -> None:
        """A bookmark of the present version for every watch."""
        with self.changed:
            self._tell("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def error(self, code: int) -> None:
        """An ERROR event for every watch."""
        with self.changed:
            self._tell("ERROR", {"kind": "Status", "code": code, "message": f"event {code}"})

    def compact(self) -> None:
        """Forget the history: older versions are gone."""
        with self.changed:
            self.oldest = self.version
            self.history.clear()

    def close(self) -> None:
        """End every watch."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _tell(self, kind: str, raw: Raw) -> None:
        self.history.append((self.version, kind, raw))
        self.changed.notify_all()

    def page(self, query: dict[str, str]) -> tuple[int, Raw]:
        """One page of a list."""
        self.lists.append(query)
        token = query.get("continue", "")
        faults = self.page_faults if token else self.list_faults
        if faults and (fault := faults.popleft()):
            return fault, {"kind": "Status", "code": fault, "message": f"fault {fault}"}
        with self.changed:
            rest, version = self._pages.pop(token) if token else (list(self.items.values()), self.version)
        limit = int(query.get("limit", 0)) or len(rest)
        metadata = {"resourceVersion": str(version)}
        if rest[limit:]:
            metadata["continue"] = f"t{len(self.lists)}"
            self._pages[metadata["continue"]] = rest[limit:], version
        return 200, {"metadata": metadata, "items": rest[:limit]}

    def since(self, place: int) -> tuple[list[Raw], int]:
        """Wait for events after a place in the history, and take them."""
        with self.changed:
            if not self.history[place:] and not self.closed:
                self.changed.wait(0.5)
            found = [{"type": kind, "object": raw} for _, kind, raw in self.history[place:]]
            return found, max(place, len(self.history))


def _handler(api: FakeWatchApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has the name
            """Nothing: the test says what matters."""

        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if api.tokens and token not in api.tokens:
                self._send(401, {"kind": "Status", "code": 401, "message": "Unauthorized"})
            elif "watch" in query:
                self._watch(query)
            else:
                self._send(*api.page(query))

        def _send(self, status: int, answer: Raw, **headers: str) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _watch(self, query: dict[str, str]) -> None:
            api.watches.append(query)
            fault = api.watch_faults.popleft() if api.watch_faults else WatchFault()
            version = int(query["resourceVersion"])
            if fault.status or version < api.oldest:
                code = fault.status or 410
                self._send(code, {"kind": "Status", "code": code, "message": "gone"}, **fault.headers)
                return
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with api.changed:
                place = sum(1 for number, _, _ in api.history if number <= version)
            if fault.error:
                self._chunk({"type": "ERROR", "object": {"code": fault.error, "message": "too old"}})
            while not (api.closed or fault.ends or fault.error):
                events, place = api.since(place)
                for event in () if fault.silent else events:
                    self._chunk(event)
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, event: Raw) -> None:
            content = json.dumps(event).encode() + b"\n"
            half = len(content) // 2
            for piece in (content[:half], content[half:]):  # an event need not come in one piece
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()

    return Handler


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""


@contextmanager
def serve_watches(api: FakeWatchApi) -> Iterator[Server]:
    """Run the server on a port of its own until the block ends."""
    http = _Quiet(("127.0.0.1", 0), _handler(api))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    api.server = Server("127.0.0.1", http.server_address[1], tls=False)
    try:
        yield api.server
    finally:
        api.close()
        http.shutdown()
        http.server_close()
        thread.join()
