# SPDX-License-Identifier: MIT
"""HTTP answers with one deadline for all of them: status line, headers and body.

The time limit of a socket is one for each read: who sends a byte now and then keeps every limit and
never comes to an end.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, Request


class _Timed(io.RawIOBase):
    """What a socket brings, until a deadline on the monotonic clock; then TimeoutError."""

    def __init__(self, raw: io.RawIOBase, stream: socket.socket, seconds: float) -> None:
        self._raw, self._stream = raw, stream
        self._silence = stream.gettimeout() or seconds
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """As any raw stream; raises TimeoutError once the time is over."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("it sends too slowly")
        self._stream.settimeout(min(self._silence, left))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close what is read from."""
        self._raw.close()
        super().close()


def _answers(seconds: float) -> type[HTTPResponse]:
    class Answer(HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
            super().__init__(sock, *args, **named)
            self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, seconds))

    return Answer


def handlers(seconds: float, context: ssl.SSLContext | None) -> tuple[HTTPHandler, HTTPSHandler]:
    """For an opener: answers that take `seconds` at most, over both schemes."""

    class Plain(HTTPConnection):
        response_class = _answers(seconds)

    class Secured(HTTPSConnection):
        response_class = _answers(seconds)

    class PlainHandler(HTTPHandler):
        def http_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Plain, req)

    class SecuredHandler(HTTPSHandler):
        def https_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Secured, req, context=context)

    return PlainHandler(), SecuredHandler(context=context)
