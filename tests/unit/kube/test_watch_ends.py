# SPDX-License-Identifier: MIT
"""How a watch ends that cannot begin, or that another thread stops: an error of the API, never another."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiError, ApiUnreachable
from kubectl_pacto.kube.reflector import Reflector
from kubectl_pacto.kube.stream import Watch
from kubectl_pacto.kube.transport import HttpTransport, Server, TransportError
from tests.support.fake_watch_api import FakeWatchApi, serve_watches
from tests.support.tls_api import authority
from tests.unit.kube.test_reflector import PATH, QUICK, Copy, decode, until

NOWHERE = Server("127.0.0.1", 1, tls=False)
ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("error", [TransportError("no credential"), FileNotFoundError(2, "no ca.crt")])
def test_a_watch_whose_connection_cannot_be_made_is_unreachable(error: Exception) -> None:
    def refuse() -> http.client.HTTPConnection:
        raise error

    with pytest.raises(ApiUnreachable, match=r"no c"):
        list(Watch(NOWHERE, connection=refuse).events("/api/v1/pods"))


def test_a_reflector_lives_on_while_its_watch_has_no_credential() -> None:
    api, refused = FakeWatchApi(), threading.Event()

    def open_connection() -> http.client.HTTPConnection:
        if not refused.is_set():
            refused.set()
            raise TransportError("the credential program failed")
        return http.client.HTTPConnection(api.server.host, api.server.port, timeout=5)

    with serve_watches(api):
        copy = Copy()
        reflector = Reflector(PATH, decode, copy, timing=QUICK)
        client = Client(HttpTransport(api.server, 5.0))
        watch = Watch(api.server, connection=open_connection)
        thread = threading.Thread(target=reflector.run, args=(client, watch), daemon=True)
        thread.start()
        assert refused.wait(5)
        api.put("a", number=1)
        until(lambda: copy.values == {"a": 1} or not thread.is_alive())
        reflector.stop()
        thread.join(5)
        client.close()
    assert copy.values == {"a": 1}


class Looked(ssl.SSLSocket):
    """Another thread acts between two looks of a read at what a TLS socket holds."""

    act: Callable[[], None] | None = None
    looks = 0

    @property
    def _sslobj(self) -> Any:
        if self.act is not None:
            self.looks += 1
            if self.looks == 3:  # it was there for recv_into() and for read(), which now uses it
                other = threading.Thread(target=self.act)
                other.start()
                other.join()
        return self.__dict__["held"]

    @_sslobj.setter
    def _sslobj(self, held: Any) -> None:
        self.__dict__["held"] = held


@contextlib.contextmanager
def talking() -> Iterator[socket.socket]:
    """One end of a connection whose other end accepts a watch over TLS, and says nothing more."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)  # a test that fails must not hang
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority().certificate, authority().key)

    def serve() -> None:
        with contextlib.suppress(OSError), context.wrap_socket(theirs, server_side=True) as secured:
            secured.recv(4096)
            secured.sendall(ANSWER)
            while secured.recv(4096):
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield ours
    finally:
        ours.close()
        thread.join()


class Secured(http.client.HTTPConnection):
    """A connection over one end of a pair."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__("localhost")
        self._end = end

    def connect(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority().certificate)
        context.sslsocket_class = Looked
        self.sock = context.wrap_socket(self._end, server_hostname="localhost")


def test_a_watch_that_is_stopped_within_a_read_ends_by_an_error_of_the_api() -> None:
    with talking() as end:
        connection = Secured(end)
        watch = Watch(NOWHERE, connection=lambda: connection)
        events = watch.events("/api/v1/pods")
        assert next(events) is None
        stream = connection.sock
        assert isinstance(stream, Looked)
        stream.act = watch.stop
        with contextlib.suppress(ApiError):
            assert list(events) == []
        assert stream.looks >= 3
