# SPDX-License-Identifier: MIT
"""Which cluster, user and namespace the plugin chooses, and with which credential it asks."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.connect import connect
from kubectl_pacto.kube.connect_errors import (
    ChoiceProblem,
    ConfigProblem,
    CredentialProblem,
    NoClusterConfigured,
)
from kubectl_pacto.kube.kubeconfig import Flags, choose, load
from tests.support.fake_api import FakeApi, serve
from tests.unit.kube.kubeconfig_cases import CASES, Case, Clusters, config, one, run_clusters

PATH = "/api/v1/namespaces/default"
URL = "https://127.0.0.1:1"


def url(api: FakeApi) -> str:
    """Where a fake API listens."""
    return f"http://{api.server.host}:{api.server.port}"


@pytest.fixture
def plain() -> Iterator[FakeApi]:
    """An API without TLS."""
    api = FakeApi()
    api.put(PATH, {"kind": "Namespace"})
    with serve(api):
        yield api


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    """The clusters of the table."""
    with run_clusters() as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_choice_is_the_one_that_kubectl_makes(
    case: Case, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apis, servers = clusters
    environment = case.write(tmp_path, servers)
    monkeypatch.chdir(tmp_path)
    flags = replace(case.flags, server=servers.get(case.flags.server[1:-1], ""))
    if case.fails:
        with pytest.raises(PactoError):
            connect(flags, environment)
        return
    session = connect(flags, environment)
    assert (session.cluster, session.user, session.namespace) == (case.cluster, case.user, case.namespace)
    session.client.get(PATH)
    session.client.close()
    asked = {letter: api.seen for letter, api in apis.items() if api.seen}
    assert list(asked) == [case.server]
    assert asked[case.server][0].token == case.token


def write(folder: Path, **user: object) -> Flags:
    """A config with one user of these fields; the flags that name it."""
    content = config("c", {"k": {"server": "{a}"}}, {"u": dict(user)}, {"c": {"cluster": "k", "user": "u"}})
    Case("", {"config": content}).write(folder, {"a": URL})
    return Flags(kubeconfig=str(folder / "config"))


def headers_of(flags: Flags) -> tuple[tuple[str, str], ...]:
    """The headers that go with each request."""
    return connect(flags, {}).transport._target.headers


def test_impersonation_comes_from_the_file_and_a_flag_replaces_it(tmp_path: Path) -> None:
    extra = {"reason": ["a", "b"]}
    flags = write(tmp_path, **{"as": "jane", "as-groups": ["g1", "g2"], "as-user-extra": extra})
    assert headers_of(flags) == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-reason", "a"),
        ("Impersonate-Extra-reason", "b"),
    )
    replaced = headers_of(replace(flags, as_user="joe", as_groups=("g3",), as_uid="7"))
    assert replaced[:3] == (
        ("Impersonate-User", "joe"),
        ("Impersonate-Group", "g3"),
        ("Impersonate-Uid", "7"),
    )


def test_a_group_without_a_user_to_act_as_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CredentialProblem, match="--as"):
        connect(replace(write(tmp_path), as_groups=("g",)), {})


def test_a_password_is_basic_authentication(tmp_path: Path) -> None:
    expected = base64.b64encode(b"me:secret").decode()
    flags = write(tmp_path, username="me", password="secret")
    assert headers_of(flags) == (("Authorization", f"Basic {expected}"),)
    assert headers_of(replace(flags, token="t")) == ()


def test_an_identity_provider_counts_while_its_token_is_valid(tmp_path: Path) -> None:
    def provider(expires: float) -> Flags:
        claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
        token = {"name": "oidc", "config": {"id-token": f"h.{claims}.s"}}
        return write(tmp_path, **{"auth-provider": token})

    assert connect(provider(time.time() + 60), {}).user == "u"
    with pytest.raises(CredentialProblem, match="credential plugin"):
        connect(provider(time.time() - 60), {})


def test_a_bare_host_is_asked_over_tls_where_tls_is_configured() -> None:
    environment = {"KUBECONFIG": "missing"}
    assert connect(Flags(server="10.0.0.1:6443"), environment).server == "http://10.0.0.1:6443"
    assert connect(Flags(server="10.0.0.1:6443", insecure=True), environment).server.startswith("https://")


def test_the_path_of_a_server_goes_before_each_request(plain: FakeApi) -> None:
    api = plain
    api.put(f"/k8s/clusters/c-1{PATH}", {"kind": "Namespace"})
    session = connect(Flags(server=f"{url(api)}/k8s/clusters/c-1/"), {})
    session.client.get(PATH)
    assert api.seen[0].path == f"/k8s/clusters/c-1{PATH}"
    session.client.close()


def test_a_proxy_of_the_environment_is_used_but_never_for_this_machine() -> None:
    def proxy(server: str, **environment: str) -> str:
        return connect(Flags(server=server), environment).transport._target.proxy

    given = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "corp.example,10.0.0.0/8"}
    assert proxy("https://kube.example", **given) == "http://proxy:3128"
    assert proxy("http://kube.example", **given) == ""
    for server in (
        "https://127.0.0.1:6443",
        "https://localhost",
        "https://a.corp.example",
        "https://10.1.2.3",
    ):
        assert proxy(server, **given) == ""
    with pytest.raises(CredentialProblem, match="socks5"):
        proxy("https://kube.example", HTTPS_PROXY="socks5://proxy:1080")


def test_the_pods_own_account_is_used_only_where_nothing_is_configured(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "namespace").write_text("where-it-runs")
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "KUBECONFIG": "missing"}
    session = connect(Flags(), pod, str(tmp_path))
    assert (session.server, session.namespace) == ("https://[fd00::1]:443", "where-it-runs")
    assert connect(Flags(namespace="n"), pod, str(tmp_path)).namespace == "n"
    assert connect(Flags(), {**pod, "POD_NAMESPACE": "p"}, str(tmp_path)).namespace == "p"
    for refused in (Flags(token="t"), Flags(client_certificate="c")):
        with pytest.raises(NoClusterConfigured):
            connect(refused, pod, str(tmp_path))
    with pytest.raises(NoClusterConfigured):
        connect(Flags(), {"KUBECONFIG": "missing"}, str(tmp_path))
    Case("", {"a": one("a")}).write(tmp_path, {"a": URL})
    assert connect(Flags(), {**pod, "KUBECONFIG": str(tmp_path / "a")}, str(tmp_path)).server == URL


def test_what_is_wrong_names_the_file_and_what_there_is(tmp_path: Path) -> None:
    Case("", {"a": one("a"), "twice": config(clusters={})}).write(tmp_path, {"a": URL})
    with pytest.raises(ChoiceProblem, match=r"context 'nope' does not exist; there is: ctx-a; read: .*/a$"):
        choose(load(Flags(kubeconfig=str(tmp_path / "a"))), Flags(context="nope"))
    entry = {"name": "same", "cluster": {"server": URL}}
    (tmp_path / "twice").write_text(json.dumps({"clusters": [entry, entry]}))
    with pytest.raises(ConfigProblem, match=r"twice: clusters\[1\].name: is there twice: 'same'"):
        load(Flags(kubeconfig=str(tmp_path / "twice")))
    (tmp_path / "shape").write_text("current-context: [1]\n")
    with pytest.raises(ConfigProblem, match="shape: current-context: must be a string"):
        load(Flags(kubeconfig=str(tmp_path / "shape")))
    with pytest.raises(ConfigProblem, match="cannot be read: Is a directory"):
        load(Flags(kubeconfig=str(tmp_path)))


def test_inline_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    flags = write(tmp_path, **{"client-certificate-data": "!!!"})
    with pytest.raises(ConfigProblem, match="client-certificate-data"):
        connect(flags, {})


def test_heartbeats_are_judged_by_the_servers_clock() -> None:
    session = connect(Flags(server=URL), {})
    assert abs(session.now() - time.time()) < 1
    session.transport._note_clock("Mon, 30 Nov 2020 08:00:00 GMT")
    assert abs(session.now() - 1606723200.5) < 1
    session.transport._note_clock("no date")
    assert abs(session.now() - 1606723200.5) < 1
