# SPDX-License-Identifier: MIT
"""The two small HTTP servers of the operator: /healthz with /readyz, and /metrics."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)
SILENCE_SECONDS: Final = 10
# connections at a time: two Prometheus servers and a person; whoever sees whether this process is well
METRICS_CLIENTS: Final = 4
PROBES: Final = 16
# how long a new connection may wait for one that is just being answered
ROOM_SECONDS: Final = 1.0
# how long `close` may have to wait for a server
POLL_SECONDS = 0.5
PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
# path -> (status, text)
Answers = Mapping[str, Callable[[], tuple[int, str]]]


class _Http(ThreadingHTTPServer):
    """With TLS where there is a context for the next connection; the handshake has its own thread, too.

    A thread for each of `most` connections. When all are taken, the oldest that has not come to its request
    gives way; one that is being answered does not.
    """

    daemon_threads = True
    request_queue_size = 64
    context: Callable[[], ssl.SSLContext] | None = None

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], most: int) -> None:
        self.free = most
        self._room = threading.Condition()
        # whose request is not whole yet, by their addresses, the oldest first
        self._waiting: dict[Any, socket.socket] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread, or close it."""
        if not self._take(request, client_address):
            LOG.warning("too many connections: that of %s is closed", client_address)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            self._release(client_address)  # no thread could be started
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The whole life of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._release(client_address)

    def _take(self, request: socket.socket, client_address: Any) -> bool:
        with self._room:
            if not self.free and self._waiting:
                oldest = self._waiting.pop(next(iter(self._waiting)))
                with contextlib.suppress(OSError):
                    # what a TLS socket adds to this is no business of another thread's
                    socket.socket.shutdown(oldest, socket.SHUT_RDWR)
            if not self._room.wait_for(lambda: self.free, ROOM_SECONDS):
                return False
            self.free -= 1
            self._waiting[client_address] = request
            return True

    def _release(self, client_address: Any) -> None:
        with self._room:
            self._waiting.pop(client_address, None)
            self.free += 1
            self._room.notify()

    def answers(self, client_address: Any) -> None:
        """The request of a connection is whole: from now on it is not cut off."""
        with self._room:
            self._waiting.pop(client_address, None)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        if self.context is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(SILENCE_SECONDS)
        try:
            secured = self.context().wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        except OSError:
            return  # cut off
        with secured:
            with self._room:
                if client_address not in self._waiting:
                    return  # cut off before there was anything to cut
                self._waiting[client_address] = secured
            try:
                secured.do_handshake()
            except OSError:
                return  # a client that does not speak TLS
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class
        """A client that went away is no news."""
        LOG.debug("an answer to %s ended early", client_address, exc_info=True)


class Server:
    """Serves some paths on one address until it is closed.

    `context` gives each connection its TLS; `guard` says 200 or refuses, by the Authorization header;
    `most` connections are served at a time.
    """

    def __init__(
        self,
        address: str,
        answers: Answers,
        *,
        context: Callable[[], ssl.SSLContext] | None = None,
        guard: Callable[[str], int] | None = None,
        most: int = PROBES,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._http = _Http((host.strip("[]"), int(port)), _handler(answers, guard), most)
        self._http.context = context
        self._thread = threading.Thread(target=self._http.serve_forever, args=(POLL_SECONDS,), daemon=True)
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


def _handler(answers: Answers, guard: Callable[[str], int] | None) -> type[BaseHTTPRequestHandler]:
    making = threading.Lock()

    def made(answer: Callable[[], tuple[int, str]]) -> tuple[int, bytes]:
        # one at a time: of a large fleet an answer takes tens of megabytes until it is bytes
        with making:
            status, text = answer()
            return status, text.encode()

    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE_SECONDS  # a client that says nothing does not keep a thread

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has the name
            """Nothing: probes come every few seconds."""

        def do_GET(self) -> None:
            assert isinstance(self.server, _Http)
            self.server.answers(self.client_address)
            answer = answers.get(self.path.partition("?")[0])
            refused = 200 if guard is None else guard(self.headers.get("Authorization", ""))
            if refused != 200:
                status, body = refused, b"a bearer token that may get /metrics is needed\n"
            else:
                status, body = made(answer) if answer is not None else (404, b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", PLAIN)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
