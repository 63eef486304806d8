# SPDX-License-Identifier: MIT
"""Metrics over TLS: certificates that are renewed under load, and readers that the API server vouches for."""

from __future__ import annotations

import contextlib
import http.client
import logging
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.controller import health
from kubectl_pacto.controller.health import Server
from kubectl_pacto.controller.options import settings
from kubectl_pacto.controller.serving import ACCESS_REVIEWS, REVIEWS, CertificateFiles, Certificates, Guard
from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.errors import ApiForbidden
from tests.support.require import require_programs
from tests.support.tls_api import authority

PATHS = {"/metrics": lambda: (200, "pacto_leader 1\n")}
POD = {"POD_NAMESPACE": "ns"}


def make(folder: Path, name: str) -> None:
    """A certificate of this name in a folder, as tls.crt and tls.key."""
    require_programs("unit", "openssl")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made = [*command, "-subj", f"/CN={name}", "-days", "2", "-keyout", "new.key", "-out", "new.crt"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    for end in ("crt", "key"):
        (folder / f"new.{end}").replace(folder / f"tls.{end}")


def served(server: Server) -> bytes:
    """The certificate that a server shows, DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.port), 5) as raw, context.wrap_socket(raw) as secured:
        found = secured.getpeercert(binary_form=True)
        assert found is not None
        return found


def scrape(port: int, token: str = "", path: str = "/metrics") -> tuple[int, str]:
    """A scrape that trusts this run's authority alone."""
    context = ssl.create_default_context(cafile=str(authority().certificate))
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=5)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Reviews:
    """An API server that knows some tokens, and who may get /metrics."""

    def __init__(self) -> None:
        self.users = {"good": "prometheus", "other": "somebody"}
        self.asked: list[str] = []
        self.is_forbidden = False

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(path)
        if self.is_forbidden:
            raise ApiForbidden(method="POST", path=path, problem="no")
        if path == REVIEWS:
            name = self.users.get(body["spec"]["token"])
            user = {"username": name, "groups": ["g"]}
            return {"status": {"authenticated": name is not None, "user": user}}
        assert path == ACCESS_REVIEWS
        spec = body["spec"]
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        assert spec["groups"] == ["g"]
        return {"status": {"allowed": spec["user"] == "prometheus"}}

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = authority()
    shutil.copy(made.certificate, tmp_path / "tls.crt")
    shutil.copy(made.key, tmp_path / "tls.key")
    return tmp_path


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "POLL_SECONDS", 0.01)


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def secured(folder: Path, reviews: Reviews) -> Iterator[Server]:
    context = Certificates(CertificateFiles(str(folder))).context
    guard = Guard(lambda: reviews).check  # type: ignore[arg-type,return-value]
    with Server("127.0.0.1:0", PATHS, context=context, guard=guard) as server:
        yield server


@pytest.mark.parametrize(("token", "status"), [("good", 200), ("other", 403), ("unknown", 401), ("", 401)])
def test_who_may_read(secured: Server, token: str, status: int) -> None:
    found, text = scrape(secured.port, token)
    assert found == status
    assert ("pacto_leader" in text) is (status == 200)


def test_a_path_that_is_not_there_tells_strangers_nothing(secured: Server) -> None:
    assert scrape(secured.port, path="/else")[0] == 401
    assert scrape(secured.port, "good", path="/else")[0] == 404


def test_an_answer_stands_for_a_while_and_no_longer(reviews: Reviews) -> None:
    now = [0.0]
    guard = Guard(lambda: reviews, lambda: now[0])  # type: ignore[arg-type,return-value]
    assert [guard.check("Bearer good") for _ in range(3)] == [200] * 3
    assert len(reviews.asked) == 2
    reviews.users.clear()
    now[0] = 31
    assert guard.check("Bearer good") == 401


def test_without_the_rights_to_ask_nobody_reads_and_the_next_question_is_asked(reviews: Reviews) -> None:
    guard = Guard(lambda: reviews)  # type: ignore[arg-type,return-value]
    reviews.is_forbidden = True
    assert guard.check("Bearer good") == 503
    reviews.is_forbidden = False
    assert guard.check("Bearer good") == 200


def test_strangers_cannot_fill_the_memory(reviews: Reviews) -> None:
    guard = Guard(lambda: reviews)  # type: ignore[arg-type,return-value]
    for number in range(1000):
        guard.check(f"Bearer guess-{number}")
    assert len(guard._known) <= 100


def test_no_token_is_kept_or_said(reviews: Reviews, caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard(lambda: reviews)  # type: ignore[arg-type,return-value]
    with caplog.at_level(logging.DEBUG):
        guard.check("Bearer hush-hush")
        reviews.is_forbidden = True
        guard.check("Bearer hush-hush-again")
    assert "hush" not in caplog.text + repr(guard._known)


def test_a_renewed_certificate_is_shown_from_the_next_connection_on(secured: Server, folder: Path) -> None:
    before = served(secured)
    make(folder, "renewed")
    after = served(secured)
    assert after != before
    assert served(secured) == after


def test_a_secrets_links_are_followed_when_they_are_swapped(tmp_path: Path) -> None:
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        make(tmp_path / number, number)
    (tmp_path / "..data").symlink_to("1")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    certificates = Certificates(CertificateFiles(str(tmp_path)))
    with Server("127.0.0.1:0", PATHS, context=certificates.context) as server:
        before = served(server)
        (tmp_path / "..new").symlink_to("2")
        (tmp_path / "..new").replace(tmp_path / "..data")
        assert served(server) != before


def test_while_a_new_certificate_is_half_there_the_old_one_serves(
    secured: Server, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = served(secured)
    (folder / "tls.crt").write_text("half a certif")
    assert served(secured) == before
    assert "cannot be renewed" in caplog.text
    (folder / "tls.crt").unlink()
    assert served(secured) == before
    make(folder, "whole")
    assert served(secured) != before


def test_a_renewed_certificate_that_could_not_be_opened_for_a_moment_is_taken_at_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files do not change again until it is renewed the next time, long after the old one is over."""
    certificates = Certificates(CertificateFiles(str(folder)))
    before, load = certificates.context(), certificates._load

    def too_many_files() -> ssl.SSLContext:
        raise OSError(24, "Too many open files")

    make(folder, "renewed")
    monkeypatch.setattr(certificates, "_load", too_many_files)
    assert certificates.context() is before
    monkeypatch.setattr(certificates, "_load", load)
    assert certificates.context() is not before


def test_clients_that_do_not_speak_tls_or_nothing_harm_nobody(secured: Server) -> None:
    where = "127.0.0.1", secured.port
    with socket.create_connection(where, 5), socket.create_connection(where, 5) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"pacto" not in plain.recv(1000)
        assert scrape(secured.port, "good")[0] == 200


def test_old_versions_of_tls_are_refused(secured: Server) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", secured.port), 5) as raw, pytest.raises(OSError):  # noqa: PT011
        context.wrap_socket(raw)


def test_without_a_usable_certificate_the_operator_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--metrics-cert-path .*tls\.crt"):
        Certificates(CertificateFiles(str(tmp_path)))
    (tmp_path / "tls.crt").write_text("x")
    (tmp_path / "tls.key").write_text("x")
    with pytest.raises(UsageError, match="--metrics-cert-path"):
        Certificates(CertificateFiles(str(tmp_path)))


def test_the_options_have_the_public_projects_names() -> None:
    told = settings(
        ["--metrics-secure", "--metrics-cert-path=/c", "--metrics-cert-name=a", "--metrics-cert-key=b"], POD
    )
    assert told.metrics_certificate == CertificateFiles("/c", "a", "b")
    assert settings([], POD).metrics_certificate is None


@pytest.mark.parametrize("arguments", [["--metrics-secure"], ["--metrics-cert-path=/c"]])
def test_one_without_the_other_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        settings(arguments, POD)
    assert caught.value.code == 2
    assert "--metrics-cert-path" in capsys.readouterr().err


def test_the_help_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings(["-h"], POD)
    text = capsys.readouterr().out
    for name in ("--metrics-secure", "--metrics-cert-path", "--metrics-cert-name", "--metrics-cert-key"):
        assert name in text
