# SPDX-License-Identifier: MIT
"""The operator with a kubeconfig, in many threads: inline certificates, credential programs, a path."""

from __future__ import annotations

import json
import stat
import threading
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.controller.connection import Connection, connect
from kubectl_pacto.kube.connect_errors import ConfigProblem, CredentialProblem
from kubectl_pacto.kube.errors import ApiForbidden, ApiUnauthorized, ApiUnreachable
from tests.support.fake_api import FakeApi, serve
from tests.support.tls_api import authority, serve_tls
from tests.unit.kube.kubeconfig_cases import Case, config

V1 = "client.authentication.k8s.io/v1"
PATH = "/api/v1/namespaces/default"


def encoded(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()


def connection(folder: Path, url: str, user: dict[str, Any], **cluster: Any) -> Connection:
    """A connection by a kubeconfig with one user."""
    where = {"server": url, "certificate-authority-data": encoded(authority().certificate), **cluster}
    content = config("c", {"k": where}, {"u": user}, {"c": {"cluster": "k", "user": "u"}})
    Case("", {"config": content}).write(folder, {})
    return connect(str(folder / "config"))


def program(folder: Path, text: str) -> dict[str, Any]:
    """A user whose credentials a shell script prints, one line in `runs` for each time it runs."""
    path = folder / "login"
    path.write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": V1, "interactiveMode": "Never", "command": str(path)}}


def credential(**status: object) -> str:
    return f"echo '{json.dumps({'kind': 'ExecCredential', 'apiVersion': V1, 'status': status})}'"


def runs(folder: Path) -> int:
    return (folder / "runs").read_text().count("run")


@pytest.fixture
def api() -> FakeApi:
    made = FakeApi()
    made.put(PATH, {"metadata": {"name": "default"}})
    return made


def get(made: Connection) -> dict[str, Any]:
    client = made.client()
    try:
        return client.get(PATH)
    finally:
        client.close()


def test_inline_certificates(tmp_path: Path, api: FakeApi) -> None:
    mine = authority()
    user = {"client-certificate-data": encoded(mine.certificate), "client-key-data": encoded(mine.key)}
    with serve_tls(api, client_certificate=True) as url:
        assert get(connection(tmp_path, url, user))["metadata"]["name"] == "default"


def test_files_and_a_token_file_that_is_renewed(tmp_path: Path, api: FakeApi) -> None:
    (tmp_path / "token").write_text("one")
    with serve_tls(api) as url:
        made = connection(tmp_path, url, {"tokenFile": "token"})
        get(made)
        (tmp_path / "token").write_text("two")
        api.tokens = {"two"}
        get(made)
    assert [seen.token for seen in api.seen][-1] == "two"


def test_one_program_serves_all_threads(tmp_path: Path, api: FakeApi) -> None:
    user = program(tmp_path, credential(token="t1"))
    with serve_tls(api) as url:
        made = connection(tmp_path, url, user)
        threads = [threading.Thread(target=get, args=(made,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert runs(tmp_path) == 1
    assert {seen.token for seen in api.seen} == {"t1"}
    assert len(api.seen) == 8


def test_a_refusal_renews_once_for_all(tmp_path: Path, api: FakeApi) -> None:
    old, new = credential(token="t1"), credential(token="t2")
    user = program(tmp_path, f"test -f {tmp_path}/new && {new} || {old}")
    with serve_tls(api) as url:
        made = connection(tmp_path, url, user)
        get(made)
        api.tokens = {"t2"}
        (tmp_path / "new").touch()
        for _ in range(4):
            get(made)
    assert runs(tmp_path) == 2


def test_a_certificate_of_a_program_reaches_every_connection(tmp_path: Path, api: FakeApi) -> None:
    mine = authority()
    status = {
        "clientCertificateData": mine.certificate.read_text(),
        "clientKeyData": mine.key.read_text(),
    }
    with serve_tls(api, client_certificate=True) as url:
        made = connection(tmp_path, url, program(tmp_path, credential(**status).replace("\\n", "\\\\n")))
        assert get(made)
        with pytest.raises(ApiForbidden):
            watch_once(made, api)
    assert runs(tmp_path) == 1


def watch_once(made: Connection, api: FakeApi) -> None:
    """Open a watch, which the API refuses."""
    from tests.support.fake_api import Fault

    api.faults.append(Fault(status=403))
    for _ in made.watch().events(f"{PATH}?watch=1"):
        break


def test_a_program_that_fails_later_is_an_error_of_a_request_and_ends_no_thread(
    tmp_path: Path, api: FakeApi
) -> None:
    user = program(tmp_path, f"test -f {tmp_path}/broken && exit 3\n{credential(token='t1')}")
    with serve_tls(api) as url:
        made = connection(tmp_path, url, user)
        get(made)
        (tmp_path / "broken").touch()
        api.tokens = {"t2"}
        for ask in (lambda: get(made), lambda: list(made.watch().events(PATH))):
            with pytest.raises((ApiUnauthorized, ApiUnreachable)):
                ask()


def test_a_path_before_all_and_whom_to_act_as(tmp_path: Path, api: FakeApi) -> None:
    api.put(f"/clusters/a{PATH}", {"metadata": {"name": "below"}})
    with serve_tls(api) as url:
        made = connection(tmp_path, f"{url}/clusters/a", {"token": "t", "as": "somebody"})
        assert get(made)["metadata"]["name"] == "below"
        with pytest.raises(ApiForbidden):
            watch_once(made, api)
    assert [seen.path.partition("?")[0] for seen in api.seen] == [f"/clusters/a{PATH}"] * 2


def test_no_credential_goes_over_plain_http(tmp_path: Path, api: FakeApi) -> None:
    with serve(api) as server:
        assert get(connection(tmp_path, f"http://127.0.0.1:{server.port}", {"token": "t"}))
    assert [seen.token for seen in api.seen] == [""]


@pytest.mark.parametrize(
    ("user", "error"),
    [
        ({"client-certificate-data": "!"}, ConfigProblem),
        ({"exec": {"apiVersion": V1}}, CredentialProblem),
        ({"auth-provider": {"name": "gcp"}}, CredentialProblem),
    ],
)
def test_what_cannot_work_stops_the_start(
    tmp_path: Path, user: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        connection(tmp_path, "https://127.0.0.1:1", user)


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    part = {"apiVersion": V1, "interactiveMode": "Never", "command": "no-such-login"}
    made = connection(tmp_path, "https://127.0.0.1:1", {"exec": part})
    with pytest.raises(ApiUnreachable, match="no-such-login"):
        get(made)
