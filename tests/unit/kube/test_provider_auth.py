# SPDX-License-Identifier: MIT
"""The auth provider oidc: a token that is valid is used, one that has expired is renewed and kept."""

from __future__ import annotations

import base64
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from kubectl_pacto.kube.connect import connect
from kubectl_pacto.kube.connect_errors import CredentialProblem
from kubectl_pacto.kube.kubeconfig import Flags
from tests.support.fake_api import FakeApi
from tests.support.tls_api import authority, serve_tls
from tests.unit.kube.kubeconfig_cases import Case, config

PATH = "/api/v1/namespaces/default"


def token(seconds: float) -> str:
    """An identity token that expires in so many seconds."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds}).encode()).decode()
    return f"h.{claims.rstrip('=')}.s"


class Issuer:
    """An identity provider: one refresh token is good once."""

    def __init__(self) -> None:
        self.url = ""
        self.good = "first"
        self.answer = token(3600)
        self.asked: list[dict[str, list[str]]] = []

    def renew(self, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        self.asked.append(form)
        if form.get("refresh_token") != [self.good]:
            return 400, {"error": "invalid_grant"}
        self.good = f"after-{self.good}"
        found = {"id_token": self.answer, "refresh_token": self.good, "access_token": "a"}
        return 200, {**found, "token_type": "Bearer"}


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer over TLS, whose authority nobody knows who is not told."""
    made, state = authority(), Issuer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Silent."""

        def _say(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self._say(200, {"token_endpoint": f"{state.url}/token"})

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._say(*state.renew(parse_qs(self.rfile.read(length).decode())))

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust us ends the handshake."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    http = Server(("127.0.0.1", 0), Handler)
    http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    state.url = f"https://localhost:{http.server_address[1]}"
    try:
        yield state
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def kubeconfig(folder: Path, server: str, issuer: Issuer, **more: str) -> Flags:
    """A config whose user's token has expired."""
    settings = {
        "id-token": token(-60), "refresh-token": "first", "client-id": "kubectl", "client-secret": "s",
        "idp-issuer-url": issuer.url, "idp-certificate-authority": str(authority().certificate), **more,
    }  # fmt: skip
    user = {"auth-provider": {"name": "oidc", "config": {k: v for k, v in settings.items() if v}}}
    cluster = {"server": server, "insecure-skip-tls-verify": True}
    content = config("c", {"k": cluster}, {"u": user}, {"c": {"cluster": "k", "user": "u"}})
    Case("", {"config": content}).write(folder, {})
    (folder / "config").chmod(0o600)
    return Flags(kubeconfig=str(folder / "config"))


def kept(flags: Flags) -> dict[str, str]:
    """The provider's settings as the file has them."""
    found = yaml.safe_load(Path(flags.kubeconfig).read_text())
    (user,) = found["users"]
    settings: dict[str, str] = user["user"]["auth-provider"]["config"]
    return settings


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    pytest.importorskip("kubernetes")
    with issuing() as made:
        yield made


def test_an_expired_token_is_renewed_used_and_kept(tmp_path: Path, issuer: Issuer) -> None:
    api = FakeApi()
    api.put(PATH, {})
    with serve_tls(api) as url:
        flags = kubeconfig(tmp_path, url, issuer)
        for _ in range(2):  # the second finds what the first kept
            session = connect(flags, {})
            session.client.get(PATH)
            session.client.close()
    assert [seen.token for seen in api.seen] == [issuer.answer] * 2
    assert len(issuer.asked) == 1
    assert (kept(flags)["id-token"], kept(flags)["refresh-token"]) == (issuer.answer, "after-first")
    assert Path(flags.kubeconfig).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_an_issuer_that_nobody_vouches_for_gets_no_refresh_token(tmp_path: Path, issuer: Issuer) -> None:
    flags = kubeconfig(tmp_path, "https://127.0.0.1:1", issuer, **{"idp-certificate-authority": ""})
    with pytest.raises(CredentialProblem, match="cannot be renewed"):
        connect(flags, {})
    assert issuer.asked == []


@pytest.mark.parametrize("change", [{"refresh-token": "used"}, {"idp-issuer-url": "https://localhost:1"}])
def test_a_renewal_that_fails_is_one_clear_error(
    tmp_path: Path, issuer: Issuer, change: dict[str, str]
) -> None:
    flags = kubeconfig(tmp_path, "https://127.0.0.1:1", issuer, **change)
    before = kept(flags)
    with pytest.raises(CredentialProblem, match=r"user u: .*cannot be renewed"):
        connect(flags, {})
    assert kept(flags) == before


def test_an_issuer_that_gives_an_expired_token_is_told_so(tmp_path: Path, issuer: Issuer) -> None:
    issuer.answer = token(-1)
    with pytest.raises(CredentialProblem, match="no valid token"):
        connect(kubeconfig(tmp_path, "https://127.0.0.1:1", issuer), {})


def test_without_the_official_client_the_remedy_is_named(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(CredentialProblem, match=r"pip install 'kubectl-pacto\[oidc\]'.*credential plugin"):
        connect(kubeconfig(tmp_path, "https://127.0.0.1:1", issuer), {})


def test_a_valid_token_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    flags = kubeconfig(tmp_path, "https://127.0.0.1:1", Issuer(), **{"id-token": token(60)})
    assert connect(flags, {}).user == "u"


@pytest.mark.parametrize("name", ["gcp", "azure", "unheard-of"])
def test_providers_that_kubectl_has_no_longer_are_named(tmp_path: Path, name: str) -> None:
    user = {"auth-provider": {"name": name, "config": {"access-token": "x"}}}
    cluster = {"server": "https://127.0.0.1:1"}
    content = config("c", {"k": cluster}, {"u": user}, {"c": {"cluster": "k", "user": "u"}})
    Case("", {"config": content}).write(tmp_path, {})
    with pytest.raises(CredentialProblem, match=f"'{name}'.*credential plugin"):
        connect(Flags(kubeconfig=str(tmp_path / "config")), {})
