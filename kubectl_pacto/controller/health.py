# SPDX-License-Identifier: MIT
"""The two small HTTP servers of the operator: /healthz with /readyz, and /metrics."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)
SILENCE_SECONDS: Final = 10
# how long `close` may have to wait for a server
POLL_SECONDS = 0.5
PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
# path -> (status, text)
Answers = Mapping[str, Callable[[], tuple[int, str]]]


class _Http(ThreadingHTTPServer):
    """With TLS where there is a context for the next connection; the handshake has its own thread, too."""

    daemon_threads = True
    context: Callable[[], ssl.SSLContext] | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        if self.context is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(SILENCE_SECONDS)
        try:
            secured = self.context().wrap_socket(request, server_side=True)
        except OSError:
            return  # a client that does not speak TLS
        with secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class
        """A client that went away is no news."""
        LOG.debug("an answer to %s ended early", client_address, exc_info=True)


class Server:
    """Serves some paths on one address until it is closed.

    `context` gives each connection its TLS; `guard` says 200 or refuses, by the Authorization header.
    """

    def __init__(
        self,
        address: str,
        answers: Answers,
        *,
        context: Callable[[], ssl.SSLContext] | None = None,
        guard: Callable[[str], int] | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._http = _Http((host.strip("[]"), int(port)), _handler(answers, guard))
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
    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE_SECONDS  # a client that says nothing does not keep a thread

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has the name
            """Nothing: probes come every few seconds."""

        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            refused = 200 if guard is None else guard(self.headers.get("Authorization", ""))
            if refused != 200:
                status, text = refused, "a bearer token that may get /metrics is needed\n"
            else:
                status, text = answer() if answer is not None else (404, "not found\n")
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", PLAIN)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
