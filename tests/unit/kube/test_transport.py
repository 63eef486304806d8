# SPDX-License-Identifier: MIT
"""One connection for many requests: what is sent goes at once, and a create never twice."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from kubectl_pacto.kube.transport import FRESH_SECONDS, HttpTransport, Server, TransportError, connection_to
from tests.support.fake_api import FakeApi, Fault
from tests.support.tls_api import authority, serve_tls

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
BODY = b'{"kind":"Lease","metadata":{"name":"node-a"}}'
JSON = {"Content-Type": "application/json"}


class Counted:
    """A transport that counts its connections, by a clock of the test's."""

    def __init__(self, api: FakeApi) -> None:
        self.now = 0.0
        self.opened = 0
        self._server = api.server
        self.transport = HttpTransport(api.server, connection=self._open, clock=lambda: self.now)

    def _open(self) -> http.client.HTTPConnection:
        self.opened += 1
        return connection_to(self._server, 2.0)

    def create(self, name: str) -> int:
        body = BODY.replace(b"node-a", name.encode())
        return self.transport.exchange("POST", LEASES, body, JSON).status


@pytest.fixture
def counted(api: FakeApi) -> Iterator[Counted]:
    made = Counted(api)
    yield made
    made.transport.close()


def test_creates_in_a_row_share_a_connection(counted: Counted) -> None:
    assert [counted.create(f"node-{number}") for number in range(5)] == [201] * 5
    counted.transport.exchange("GET", LEASES, None, {})
    assert counted.create("last") == 201
    assert counted.opened == 1


def test_a_create_trusts_no_connection_that_has_been_idle(counted: Counted) -> None:
    counted.create("node-a")
    counted.now += FRESH_SECONDS
    assert counted.create("node-b") == 201
    assert counted.opened == 2
    counted.now += 10 * FRESH_SECONDS
    counted.transport.exchange("GET", LEASES, None, {})
    assert counted.opened == 2  # a read that finds it closed is sent again


@pytest.mark.parametrize("idle", [0.0, 100.0])
def test_a_create_that_is_cut_off_is_told_and_not_sent_again(
    api: FakeApi, counted: Counted, idle: float
) -> None:
    counted.create("node-a")
    counted.now += idle
    api.faults.append(Fault(hang_up=True))
    with pytest.raises(TransportError):
        counted.create("node-b")
    assert api.count("POST") == 2
    assert counted.create("node-c") == 201


def test_over_tls_a_body_does_not_wait_for_the_headers_to_be_acknowledged(api: FakeApi) -> None:
    with serve_tls(api) as url:
        server = Server("localhost", urlsplit(url).port or 0, ca_file=str(authority().certificate))
        for made in (connection_to(server, 2.0), connection_to(api.server, 2.0)):
            made.connect()
            try:
                assert made.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            finally:
                made.close()


def test_a_handshake_that_fails_leaves_no_socket_open(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    create: Callable[..., socket.socket] = socket.create_connection

    def kept(*address: object) -> socket.socket:
        made.append(create(*address))
        return made[-1]

    monkeypatch.setattr(socket, "create_connection", kept)
    with serve_tls(api) as url, pytest.raises(OSError, match="certificate verify failed"):
        connection_to(Server("localhost", urlsplit(url).port or 0), 2.0).connect()
    assert made[0].fileno() == -1
