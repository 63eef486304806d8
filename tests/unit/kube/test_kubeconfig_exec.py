# SPDX-License-Identifier: MIT
"""Credential programs: what they are told, what they may answer, and how their absence reads."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.kube.connect import connect
from kubectl_pacto.kube.connect_errors import CredentialProblem, PluginFailed, PluginMissing
from kubectl_pacto.kube.exec_auth import Credential, ExecTokens, Program, run
from kubectl_pacto.kube.kubeconfig import Flags
from tests.support.fake_api import FakeApi
from tests.support.tls_api import authority, serve_tls
from tests.unit.kube.kubeconfig_cases import Case, config

V1 = "client.authentication.k8s.io/v1"
PATH = "/api/v1/namespaces/default"


def script(folder: Path, text: str, name: str = "login") -> Path:
    """An executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def answer(**status: object) -> str:
    """The script's line that prints a credential."""
    body = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
    return f"echo '{json.dumps(body)}'"


def program(command: str, **more: Any) -> Program:
    """A program of user u."""
    return Program(**{"user": "u", "command": command, "version": V1, "interactive_mode": "Never", **more})


def flags_for(folder: Path, url: str, **exec_part: object) -> Flags:
    """A config whose user has this exec part."""
    part = {"apiVersion": V1, "interactiveMode": "Never", **exec_part}
    told = {"name": "client.authentication.k8s.io/exec", "extension": {"x": 1}}
    cluster = {"server": url, "insecure-skip-tls-verify": True, "extensions": [told]}
    content = config("c", {"k": cluster}, {"u": {"exec": part}}, {"c": {"cluster": "k", "user": "u"}})
    Case("", {"config": content}).write(folder, {})
    return Flags(kubeconfig=str(folder / "config"))


def test_a_missing_program_stops_with_its_install_hint_before_any_request(tmp_path: Path) -> None:
    api = FakeApi()
    with serve_tls(api) as url:
        flags = flags_for(
            tmp_path,
            url,
            command="no-such-login",
            installHint="Install it with:\n  install no-such-login\n",
        )
        session = connect(flags, {})
        with pytest.raises(PluginMissing) as caught:
            session.client.get(PATH)
    assert not api.seen
    assert str(caught.value) == (
        "the credential plugin no-such-login of user u is not installed or not on PATH: "
        "Install it with:\n  install no-such-login"
    )


def test_the_program_is_told_its_cluster_and_gets_its_arguments_and_variables(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script(tmp_path, f'echo "$@" "$WHO" "$KUBERNETES_EXEC_INFO" > {told}\n{answer(token="t1")}')
    api = FakeApi()
    api.put(PATH, {})
    with serve_tls(api) as url:
        flags = flags_for(
            tmp_path,
            url,
            command="./login",
            args=["--for", "k"],
            env=[{"name": "WHO", "value": "me"}],
            provideClusterInfo=True,
        )
        session = connect(flags, {})
        session.client.get(PATH)
        session.client.close()
    words, _, info = told.read_text().partition(" {")
    assert words == "--for k me"
    spec = json.loads("{" + info)["spec"]
    skipped = {"insecure-skip-tls-verify": True}
    assert spec == {"interactive": False, "cluster": {"server": url, **skipped, "config": {"x": 1}}}
    assert api.seen[0].token == "t1"


def test_a_refused_token_is_asked_for_once_more(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script(tmp_path, f"echo x >> {count}\nn=$(wc -l < {count})\n{answer(token='tN')}".replace("tN", "t'$n'"))
    api = FakeApi()
    api.put(PATH, {})
    api.tokens = {"t2"}
    with serve_tls(api) as url:
        session = connect(flags_for(tmp_path, url, command="./login"), {})
        session.client.get(PATH)
        session.client.get(PATH)
        session.client.close()
    assert [one.token for one in api.seen] == ["t1", "t2", "t2"]


def test_an_expired_credential_is_renewed_and_a_valid_one_kept(tmp_path: Path) -> None:
    path = script(tmp_path, answer(token="t", expirationTimestamp="2026-01-01T00:00:00Z"))
    now, told = [1767225000.0], list[Credential]()
    tokens = ExecTokens(program(str(path)), {}, told.append, clock=lambda: now[0])
    assert [tokens.token(), tokens.token()] == ["t", "t"]
    assert len(told) == 1
    now[0] = 1767225595.0  # within the leeway
    tokens.token()
    assert len(told) == 2
    assert tokens.reread() is False


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 3", "failed with exit status 3"),
        ("echo hello", "no ExecCredential"),
        (answer(), "neither a token nor a certificate"),
        (answer(clientCertificateData="x"), "without its key"),
        (answer(token="t").replace("/v1", "/v1beta1"), "v1beta1"),
        (answer(token=5), "status.token"),
    ],
)
def test_a_program_that_gives_no_credential_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = script(tmp_path, text)
    with pytest.raises(PluginFailed, match=problem):
        run(program(str(path)), {})


def test_a_program_that_must_ask_a_person_needs_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(PluginFailed, match="needs a terminal"):
        run(program(str(script(tmp_path, answer(token="t"))), interactive_mode="Always"), {})


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"command": ""}, "exec.command"),
        ({"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}, "exec.apiVersion"),
        ({"command": "x", "interactiveMode": "Sometimes"}, "exec.interactiveMode"),
        ({"command": "x", "interactiveMode": ""}, "exec.interactiveMode"),
        ({"command": "x", "args": "one"}, "exec.args"),
    ],
)
def test_an_exec_part_that_is_wrong_names_its_field(
    tmp_path: Path, part: dict[str, object], problem: str
) -> None:
    with pytest.raises(CredentialProblem, match=problem):
        connect(flags_for(tmp_path, "https://127.0.0.1:1", **part), {})


def test_a_certificate_from_the_program_reaches_the_connection(tmp_path: Path) -> None:
    made = authority()
    body = {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "status": {
            "clientCertificateData": made.certificate.read_text(),
            "clientKeyData": made.key.read_text(),
        },
    }
    (tmp_path / "answer").write_text(json.dumps(body))
    script(tmp_path, f"cat {tmp_path}/answer")
    api = FakeApi()
    api.put(PATH, {})
    with serve_tls(api, client_certificate=True) as url:
        session = connect(flags_for(tmp_path, url, command="./login"), {})
        session.client.get(PATH)
        session.client.close()
    assert [one.token for one in api.seen] == [""]
