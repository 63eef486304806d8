# SPDX-License-Identifier: MIT
"""Clients that hang: their number is bounded, and neither probes nor an honest scrape wait for them."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kubectl_pacto.controller import health
from kubectl_pacto.controller.health import METRICS_CLIENTS, PROBES, Server
from kubectl_pacto.controller.serving import CertificateFiles, Certificates
from tests.support.tls_api import authority

MANY = 60
# seconds; a client that hangs keeps its thread for ten
SOON = 5
LARGE = 16 << 20  # more than sockets buffer
PATHS = {"/metrics": lambda: (200, "pacto_leader 1\n"), "/large": lambda: (200, "x" * LARGE)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "POLL_SECONDS", 0.01)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("127.0.0.1:0", PATHS, most=METRICS_CLIENTS) as made:
        yield made


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Server]:
    made = authority()
    shutil.copy(made.certificate, tmp_path / "tls.crt")
    shutil.copy(made.key, tmp_path / "tls.key")
    context = Certificates(CertificateFiles(str(tmp_path))).context
    with Server("127.0.0.1:0", PATHS, context=context, most=METRICS_CLIENTS) as server:
        yield server


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 10)


def scrape(server: Server, *, tls: bool = False) -> int:
    """The status of an honest scrape."""
    context = ssl.create_default_context(cafile=str(authority().certificate)) if tls else None
    connection = (
        http.client.HTTPSConnection("localhost", server.port, context=context, timeout=10)
        if tls
        else http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    )
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.read() == b"pacto_leader 1\n"
        return answer.status
    finally:
        connection.close()


def test_clients_that_say_nothing_are_few_and_give_way(server: Server) -> None:
    before = threading.active_count()
    with ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(connect(server))
        began = time.monotonic()
        for _ in range(3):
            assert scrape(server) == 200
        assert time.monotonic() - began < SOON
        assert threading.active_count() - before <= METRICS_CLIENTS


def test_half_a_request_is_no_request(server: Server) -> None:
    with ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(connect(server)).sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        assert scrape(server) == 200


def test_nor_is_a_handshake_that_does_not_end(secured: Server) -> None:
    before = threading.active_count()
    with ExitStack() as held:
        for number in range(MANY):
            made = held.enter_context(connect(secured))
            if number % 2:
                made.sendall(b"\x16\x03\x01\x02\x00")  # the beginning of a client's hello
        assert scrape(secured, tls=True) == 200
        assert threading.active_count() - before <= METRICS_CLIENTS


def test_who_is_being_answered_is_not_cut_off(server: Server) -> None:
    with ExitStack() as held:
        slow = held.enter_context(connect(server))
        slow.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        assert slow.recv(4) == b"HTTP"
        for _ in range(MANY):
            held.enter_context(connect(server))
        assert scrape(server) == 200
        size = 4
        while piece := slow.recv(1 << 20):
            size += len(piece)
        assert size > LARGE


def test_clients_that_read_nothing_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SILENCE_SECONDS", 1)
    before = threading.active_count()
    with Server("127.0.0.1:0", PATHS, most=METRICS_CLIENTS) as server, ExitStack() as held:
        for _ in range(METRICS_CLIENTS):
            held.enter_context(connect(server)).sendall(b"GET /large HTTP/1.0\r\n\r\n")
        time.sleep(1.5)
        assert scrape(server) == 200
    assert threading.active_count() <= before + METRICS_CLIENTS


def test_probes_are_answered_whatever_metrics_clients_do(server: Server) -> None:
    probes = {"/metrics": lambda: (200, "pacto_leader 1\n")}
    with Server("127.0.0.1:0", probes, most=PROBES) as other, ExitStack() as held:
        for _ in range(METRICS_CLIENTS):
            held.enter_context(connect(server)).sendall(b"GET /large HTTP/1.0\r\n\r\n")
        for _ in range(MANY):
            held.enter_context(connect(server))
            held.enter_context(connect(other))
        began = time.monotonic()
        assert scrape(other) == 200
        assert time.monotonic() - began < SOON


def test_one_answer_is_made_at_a_time() -> None:
    """At ten thousand Pactos an answer is twenty megabytes."""
    making, most = [0], [0]

    def text() -> tuple[int, str]:
        making[0] += 1
        most[0] = max(most[0], making[0])
        time.sleep(0.05)
        making[0] -= 1
        return 200, "pacto_leader 1\n"

    with Server("127.0.0.1:0", {"/metrics": text}, most=METRICS_CLIENTS) as server:
        threads = [threading.Thread(target=scrape, args=(server,)) for _ in range(METRICS_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
    assert most == [1]


def test_a_slot_comes_back_whatever_becomes_of_its_connection(server: Server) -> None:
    for number in range(3 * METRICS_CLIENTS):
        with connect(server) as made:
            made.sendall(b"NONSENSE\r\n\r\n" if number % 2 else b"")
    end = time.monotonic() + 5
    while server._http.free < METRICS_CLIENTS:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert scrape(server) == 200
