# SPDX-License-Identifier: MIT
"""The rarer ways to a cluster: through a proxy, under another name, with a token of a file; and a watch."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from kubectl_pacto.kube.connect import connect
from kubectl_pacto.kube.connect_errors import CredentialProblem
from kubectl_pacto.kube.errors import ApiUnreachable
from kubectl_pacto.kube.kubeconfig import Flags
from tests.support.fake_api import FakeApi
from tests.support.fleet_api import FleetApi, serve_fleet
from tests.support.tls_api import authority, serve_tls
from tests.unit.kube.kubeconfig_cases import Case, config

NOTHING: Mapping[str, Any] = MappingProxyType({})
PATH = "/api/v1/namespaces/default"


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy that opens tunnels; `heads` are the requests that it got."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.heads: list[str] = []
        super().__init__(("127.0.0.1", 0), Tunnel)


class Tunnel(socketserver.BaseRequestHandler):
    """One tunnel: both directions until one side closes."""

    server: Proxy

    def handle(self) -> None:
        """Read the request, connect, pass bytes on."""
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.request.recv(4096)
        self.server.heads.append(head.decode())
        host, _, port = head.split()[1].decode().rpartition(":")
        with socket.create_connection((host, int(port)), 5) as far:
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pass_on, args=(far, self.request), daemon=True)
            back.start()
            pass_on(self.request, far)
            back.join(5)


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Bytes of one direction."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@contextmanager
def proxy() -> Iterator[Proxy]:
    """A proxy on loopback."""
    with Proxy() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def flags_for(
    folder: Path, url: str, user: Mapping[str, Any] = NOTHING, cluster: Mapping[str, Any] = NOTHING
) -> Flags:
    """A kubeconfig of one cluster."""
    told = {"server": url, "certificate-authority": str(authority().certificate), **cluster}
    content = config("c", {"k": told}, {"u": dict(user)}, {"c": {"cluster": "k", "user": "u"}})
    Case("", {"config": content}).write(folder, {})
    return Flags(kubeconfig=str(folder / "config"))


def ask(flags: Flags) -> dict[str, Any]:
    """One request as these flags say."""
    session = connect(flags, {})
    try:
        return session.client.get(PATH)
    finally:
        session.client.close()


@pytest.fixture
def api() -> FakeApi:
    """An API with one object."""
    made = FakeApi()
    made.put(PATH, {"kind": "Namespace"})
    return made


def test_a_cluster_behind_a_proxy_is_reached_through_its_tunnel(api: FakeApi, tmp_path: Path) -> None:
    with serve_tls(api) as url, proxy() as between:
        address = f"http://someone:p%40ss@127.0.0.1:{between.server_address[1]}"
        assert ask(flags_for(tmp_path, url, {"token": "t"}, {"proxy-url": address}))["kind"] == "Namespace"
        (head,) = between.heads
        assert head.startswith(f"CONNECT {url.removeprefix('https://')} ")
        assert "Proxy-Authorization: Basic c29tZW9uZTpwQHNz" in head
        assert "Bearer" not in head  # the token is for the cluster alone
    assert [one.token for one in api.seen] == ["t"]


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1080", "https://127.0.0.1:1080"])
def test_a_proxy_that_is_not_supported_is_named_with_what_is(tmp_path: Path, address: str) -> None:
    with pytest.raises(CredentialProblem, match=r"is not supported, only http://"):
        ask(flags_for(tmp_path, "https://127.0.0.1:1", cluster={"proxy-url": address}))


def test_a_proxy_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ApiUnreachable, match="Connection refused"):
        ask(flags_for(tmp_path, "https://127.0.0.1:2", cluster={"proxy-url": "http://127.0.0.1:1"}))


def test_a_server_may_have_a_certificate_of_another_name(api: FakeApi, tmp_path: Path) -> None:
    with serve_tls(api) as url:
        assert ask(flags_for(tmp_path, url, cluster={"tls-server-name": "localhost"}))["kind"] == "Namespace"
        with pytest.raises(ApiUnreachable, match=r"(?i)hostname mismatch|not valid for"):
            ask(flags_for(tmp_path, url, cluster={"tls-server-name": "kube.example"}))


def test_a_token_of_a_file_is_read_again_once_it_was_refused(api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    api.tokens = {"new"}
    with serve_tls(api) as url:
        session = connect(flags_for(tmp_path, url, {"tokenFile": str(file)}), {})
        session.client._tokens.token()  # type: ignore[union-attr]
        file.write_text("new\n")
        assert session.client.get(PATH)["kind"] == "Namespace"
        session.client.close()
    assert [one.token for one in api.seen] == ["old", "new"]


def test_a_token_file_that_is_not_there_is_named(api: FakeApi, tmp_path: Path) -> None:
    with serve_tls(api) as url, pytest.raises(ApiUnreachable, match="the token file cannot be read: No such"):
        ask(flags_for(tmp_path, url, {"tokenFile": str(tmp_path / "none")}))


def test_the_first_event_of_a_watch_ends_the_wait() -> None:
    api = FleetApi()
    path = f"{PATH}?watch=true&timeoutSeconds=2&resourceVersion="
    with serve_fleet(api) as url:
        session = connect(Flags(server=url), {})
        timer = threading.Timer(0.2, lambda: api.put(PATH, {}))
        timer.start()
        assert session.await_event(f"{path}{api.version}", 5) is True
        timer.join()
        assert session.await_event(f"{path}{api.version}".replace("=2", "=1"), 5) is False
        assert session.await_event(f"{path}{api.version}", 0.1) is None  # nothing came, not even a head
        api.no_watch = True
        assert session.await_event(f"{path}{api.version}", 5) is None
        session.client.close()
