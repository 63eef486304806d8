# SPDX-License-Identifier: MIT
"""Probes against real sockets: what each kind of server answers, and what keeps a probe harmless."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubectl_pacto.collect.probing import BODY_BYTES, PortProber, parse_answer, probed_address
from kubectl_pacto.model.kube import Selector, Service
from kubectl_pacto.model.probe import HttpAnswer, Protocol
from kubectl_pacto.observe.protocol import PREFACE

SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
Answer = Callable[[socket.socket], None]


@contextmanager
def server(answer: Answer) -> Iterator[int]:
    """A server on loopback that does the same with each connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    answer(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)


def says(*pieces: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.01)

    return answer


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [
        (says(SETTINGS), Protocol.HTTP2),
        (says(SETTINGS[:4], SETTINGS[4:]), Protocol.HTTP2),
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Protocol.HTTP1),
        (says(b"\x15\x03\x01\x00\x02\x02\x46"), Protocol.TLS),
        (says(b"220 mail ready\r\n"), Protocol.OTHER),
        (says(), Protocol.NONE),
    ],
)
def test_what_a_server_speaks(answer: Answer, protocol: Protocol) -> None:
    with server(answer) as port:
        assert PortProber().protocol("127.0.0.1", port) is protocol


def test_a_server_that_answers_the_preface_without_a_status_line_speaks_http1() -> None:
    """Python's own: it takes a version it does not know for HTTP/0.9, which has no status line."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    try:
        port = served.server_address[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(PREFACE)
            assert not client.recv(64).startswith(b"HTTP/")
        assert PortProber().protocol("127.0.0.1", port) is Protocol.HTTP1
    finally:
        served.shutdown()
        served.server_close()
        thread.join(5)


def test_two_different_answers_are_none() -> None:
    answers = [says(SETTINGS), says(b"HTTP/1.1 400\r\n\r\n")]

    def answer(connection: socket.socket) -> None:
        answers.pop(0)(connection)

    with server(answer) as port:
        assert PortProber().protocol("127.0.0.1", port) is Protocol.NONE


def test_nobody_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert PortProber().protocol("127.0.0.1", port) is Protocol.NONE
    assert PortProber().get("127.0.0.1", port, "h", "/") == HttpAnswer(None)


def test_a_get_names_the_service_and_follows_nothing() -> None:
    asked: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        asked.append(connection.recv(4096))
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n")

    with server(answer) as port:
        assert PortProber().get("127.0.0.1", port, "shop.ns.svc:80", "/health z\r\nX: y").code == 302
    (request,) = asked
    assert request.startswith(b"GET /health%20z%0D%0AX:%20y HTTP/1.1\r\nHost: shop.ns.svc:80\r\n")


def test_a_server_that_never_ends_is_cut_off() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            connection.sendall(b"x" * 1000)

    with server(answer) as port:
        found = PortProber().get("127.0.0.1", port, "h", "/")
    assert found.code == 200
    assert len(found.body) == BODY_BYTES


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", HttpAnswer(204)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", HttpAnswer(200, "", "short")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            HttpAnswer(200, "", "ab"),
        ),
        (b"garbage\r\n", HttpAnswer(None)),
        (b"", HttpAnswer(None)),
        (b"HTTP/1.1 abc\r\n\r\n", HttpAnswer(None)),
    ],
)
def test_an_answer_is_read_whole_or_cut(content: bytes, answer: HttpAnswer) -> None:
    assert parse_answer(content) == answer


@pytest.mark.parametrize(
    ("service", "address"),
    [
        (Service("ns", "a", selector=Selector({"a": "b"}), cluster_ips=("10.96.0.5",)), "10.96.0.5"),
        (Service("ns", "a", selector=Selector({"a": "b"}), cluster_ips=("fd00::5",)), "fd00::5"),
        (Service("ns", "a", selector=Selector({"a": "b"}), cluster_ips=("None",)), ""),
        (Service("ns", "a", selector=Selector({"a": "b"}), cluster_ips=("127.0.0.1",)), ""),
        (Service("ns", "a", selector=Selector({"a": "b"}), cluster_ips=("169.254.169.254",)), ""),
        (Service("ns", "a", cluster_ips=("10.96.0.5",)), ""),
    ],
)
def test_only_a_cluster_ip_of_selected_pods_is_probed(service: Service, address: str) -> None:
    assert probed_address(service) == address
    assert probed_address(replace(service, type="ExternalName")) == ""


def test_the_number_of_probes_at_a_time_is_bounded() -> None:
    at_once, worst = [0], [0]
    lock = threading.Lock()
    prober = PortProber(at_once=2)

    def work() -> None:
        with prober._free:
            with lock:
                at_once[0] += 1
                worst[0] = max(worst[0], at_once[0])
            time.sleep(0.01)
            with lock:
                at_once[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worst[0] == 2
