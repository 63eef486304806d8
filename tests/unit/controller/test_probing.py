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
from typing import Any

import pytest

from kubectl_pacto.collect import probing
from kubectl_pacto.collect.probing import BODY_BYTES, PortProber, Wanted, parse_answer, probed_address
from kubectl_pacto.conformance.source import load_offline
from kubectl_pacto.model.kube import Selector, Service
from kubectl_pacto.model.probe import HttpAnswer, Probes, Protocol
from kubectl_pacto.observe.capability import has_metrics
from kubectl_pacto.observe.protocol import PREFACE
from tests.unit.controller.fixtures import KEY, World

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


def test_a_server_that_drips_is_given_its_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "HTTP_SECONDS", 0.3)

    def answer(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)

    with server(answer) as port:
        began = time.monotonic()
        assert PortProber().get("127.0.0.1", port, "h", "/") == HttpAnswer(None)
        assert time.monotonic() - began < 2


BOUND: dict[str, Any] = {
    "interfaces": ["api"],
    "capabilities": [
        {"type": kind, "binding": {"type": "http", "interface": "api", "path": path}}
        for kind, path in (("health", "/up"), ("metrics", "/metrics"))
    ],
}
ADDRESS = "10.96.9.9"
HTTP = {"name": "http", "port": 80}


class Network:
    """Where a prober connects; everything is answered by one server on loopback."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[tuple[str, int]] = []

    def connect(self, where: tuple[str, int], seconds: float) -> socket.socket:
        self.asked.append(where)
        return socket.create_connection(("127.0.0.1", self.port), seconds)


def probe(row: dict[str, Any], wanted: Wanted, answer: Answer) -> tuple[Probes, list[tuple[str, int]]]:
    """What a pass over the Pacto of a row asks, and where it connects."""
    world = World({"contract": BOUND, "service": {"clusterIPs": [ADDRESS]}, **row}, kernel=False)
    known = world.live.pactos.get(KEY)
    assert known is not None
    contract = load_offline(known.pacto).validated.contract
    assert contract is not None
    cluster = world.live.generation().for_one_check()
    with server(answer) as port:
        network = Network(port)
        PortProber(wanted, network.connect).probe(cluster, known.pacto, contract)
    return cluster.probes, network.asked


METRICS = says(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nup 1\n")


@pytest.mark.parametrize(
    ("wanted", "paths", "has_protocol"),
    [
        (Wanted(probing=True), {"/up"}, True),
        (Wanted(probing=False, metrics=True), {"/metrics"}, False),
        (Wanted(probing=True, metrics=True), {"/up", "/metrics"}, True),
    ],
)
def test_what_is_turned_on_is_asked_and_nothing_else(
    wanted: Wanted, paths: set[str], has_protocol: bool
) -> None:
    probes, asked = probe({}, wanted, METRICS)
    assert {path for _, path in probes.http} == paths
    assert bool(probes.protocols) is has_protocol
    assert set(asked) == {(ADDRESS, 80)}


def test_metrics_that_answer_are_present_by_how_they_were_found() -> None:
    probes, _ = probe({}, Wanted(probing=False, metrics=True), METRICS)
    answered = probes.http[("shop", "shop", 80), "/metrics"]
    assert answered == HttpAnswer(200, "text/plain", "up 1\n")
    assert has_metrics(answered)


@pytest.mark.parametrize(
    ("service", "asked"),
    [
        # an annotation and a monitor may name any port: only the Service's own are asked
        ({"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "6443"}}, set()),
        ({"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "80"}}, {(ADDRESS, 80)}),
        ({"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}}, {(ADDRESS, 80)}),
        ({"ports": [HTTP, {"name": "metrics", "port": 91}]}, {(ADDRESS, 91)}),
        ({"ports": [HTTP, {"name": "metrics", "port": 91, "protocol": "UDP"}]}, set()),
        ({"clusterIPs": ["None"]}, set()),
        ({"clusterIPs": ["169.254.169.254"]}, set()),
        ({"type": "ExternalName"}, set()),
    ],
)
def test_metrics_are_asked_of_the_services_own_ports_alone(
    service: dict[str, Any], asked: set[tuple[str, int]]
) -> None:
    given = {"clusterIPs": [ADDRESS], **service}
    _, found = probe({"service": given}, Wanted(probing=False, metrics=True), METRICS)
    assert set(found) == asked


def test_metrics_that_redirect_are_not_followed() -> None:
    away = says(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n")
    probes, asked = probe({}, Wanted(probing=False, metrics=True), away)
    assert probes.http[("shop", "shop", 80), "/metrics"].code == 302
    assert asked == [(ADDRESS, 80)]


def test_the_number_of_probes_at_a_time_is_bounded_whatever_the_number_of_workers() -> None:
    open_now, worst, lock = [0], [0], threading.Lock()

    def answer(connection: socket.socket) -> None:
        connection.recv(4096)

    def connect(where: tuple[str, int], seconds: float) -> socket.socket:
        with lock:
            open_now[0] += 1
            worst[0] = max(worst[0], open_now[0])
        time.sleep(0.02)
        with lock:
            open_now[0] -= 1
        return socket.create_connection(("127.0.0.1", port), seconds)

    world = World({"contract": BOUND, "service": {"clusterIPs": [ADDRESS]}}, kernel=False)
    known = world.live.pactos.get(KEY)
    assert known is not None
    contract = load_offline(known.pacto).validated.contract
    assert contract is not None
    with server(answer) as port:
        prober = PortProber(Wanted(metrics=True), connect, at_once=2)
        work = (world.live.generation().for_one_check(), known.pacto, contract)
        threads = [threading.Thread(target=prober.probe, args=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert worst[0] == 2
