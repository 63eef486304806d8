# SPDX-License-Identifier: MIT
"""The two small HTTP servers of the operator: /healthz with /readyz, and /metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
# path -> (status, text)
Answers = Mapping[str, Callable[[], tuple[int, str]]]


class Server:
    """Serves some paths on one address until it is closed."""

    def __init__(self, address: str, answers: Answers) -> None:
        host, _, port = address.rpartition(":")
        self._http = ThreadingHTTPServer((host.strip("[]"), int(port)), _handler(answers))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True, name=f"http {address}")
        self._thread.start()

    @property
    def port(self) -> int:
        """The port, also where 0 was asked for."""
        return int(self._http.server_address[1])

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a client that says nothing does not keep a thread

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has the name
            """Nothing: probes come every few seconds."""

        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            status, text = answer() if answer is not None else (404, "not found\n")
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", PLAIN)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
