# SPDX-License-Identifier: MIT
"""The request layer against real HTTP with real faults."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kubectl_pacto.kube import paths
from kubectl_pacto.kube.client import METADATA_ONLY
from kubectl_pacto.kube.credentials import TokenFile, in_cluster
from kubectl_pacto.kube.errors import (
    ApiBusy,
    ApiConflict,
    ApiError,
    ApiForbidden,
    ApiGone,
    ApiInvalid,
    ApiNotFound,
    ApiTooLarge,
    ApiUnauthorized,
    ApiUnreachable,
)
from kubectl_pacto.kube.retry import RetryPolicy, retry_after
from kubectl_pacto.kube.stream import Watch
from kubectl_pacto.kube.transport import HttpTransport, Server, TransportError
from tests.support.fake_api import FakeApi, Fault
from tests.unit.kube.conftest import MakeClient

PATH = paths.leases("ns", "node-a")
LEASE = {"kind": "Lease", "metadata": {"name": "node-a"}}


def test_an_object_is_created_read_and_replaced(api: FakeApi, make_client: MakeClient) -> None:
    client = make_client()
    created = client.post(paths.leases("ns"), LEASE)
    assert client.get(PATH) == created
    replaced = client.put(PATH, created)
    assert int(replaced["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert client.requests == 3


def test_only_metadata_is_asked_for_by_its_accept_header(api: FakeApi, make_client: MakeClient) -> None:
    api.put(PATH, {**LEASE, "spec": {"big": "x" * 1000}})
    assert "spec" not in make_client().get(PATH, accept=METADATA_ONLY)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ApiInvalid), (401, ApiUnauthorized), (403, ApiForbidden), (404, ApiNotFound),
        (409, ApiConflict), (410, ApiGone), (413, ApiTooLarge), (418, ApiError), (422, ApiInvalid),
        (429, ApiBusy), (500, ApiBusy), (503, ApiBusy), (504, ApiBusy), (505, ApiBusy),
    ],
)  # fmt: skip
def test_each_status_has_its_error_with_method_path_and_message(
    api: FakeApi, make_client: MakeClient, status: int, error: type[ApiError]
) -> None:
    api.faults.extend(Fault(status) for _ in range(10))
    with pytest.raises(error) as caught:
        make_client().get(PATH)
    assert type(caught.value) is error
    assert f"GET {PATH}" in str(caught.value)
    assert f"fault {status}" in str(caught.value)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_with_growing_pauses(
    api: FakeApi, make_client: MakeClient, slept: list[float], status: int
) -> None:
    api.put(PATH, LEASE)
    api.faults.extend([Fault(status), Fault(status)])
    assert make_client().get(PATH)["kind"] == "Lease"
    assert slept == [0.25, 0.5]


def test_after_the_last_attempt_the_error_is_told(api: FakeApi, make_client: MakeClient) -> None:
    api.faults.extend(Fault(503) for _ in range(10))
    client = make_client(attempts=3)
    with pytest.raises(ApiBusy):
        client.get(PATH)
    assert client.requests == api.count() == 3


def test_retry_after_is_honoured_within_a_bound(
    api: FakeApi, make_client: MakeClient, slept: list[float]
) -> None:
    api.put(PATH, LEASE)
    api.faults.extend([Fault(429, {"Retry-After": "3"}), Fault(429, {"Retry-After": "9999"})])
    make_client().get(PATH)
    assert slept == [3.0, 8.0]


def test_a_create_is_repeated_only_when_nothing_was_done(api: FakeApi, make_client: MakeClient) -> None:
    api.faults.append(Fault(500))
    with pytest.raises(ApiBusy):
        make_client().post(paths.leases("ns"), LEASE)
    assert api.count("POST") == 1
    api.faults.append(Fault(429))
    assert make_client().post(paths.leases("ns"), LEASE)["kind"] == "Lease"


def test_a_connection_that_ends_under_a_create_is_told_not_repeated(
    api: FakeApi, make_client: MakeClient
) -> None:
    client = make_client()
    api.put(PATH, LEASE)
    client.get(PATH)
    api.faults.append(Fault(hang_up=True))
    with pytest.raises(ApiUnreachable):
        client.post(paths.leases("ns"), {"kind": "Lease", "metadata": {"name": "node-b"}})
    assert api.count("POST") == 1


def test_a_connection_that_ends_under_a_read_is_opened_again(api: FakeApi, make_client: MakeClient) -> None:
    api.put(PATH, LEASE)
    client = make_client()
    client.get(PATH)
    api.faults.append(Fault(hang_up=True))
    assert client.get(PATH)["kind"] == "Lease"


def test_a_half_open_connection_is_noticed_by_the_timeout(api: FakeApi, make_client: MakeClient) -> None:
    api.put(PATH, LEASE)
    client = make_client(timeout=0.2)
    client.get(PATH)
    api.faults.append(Fault(hang_seconds=1.0))
    assert client.get(PATH)["kind"] == "Lease"


def test_no_server_is_a_clear_error(slept: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        transport = HttpTransport(Server("127.0.0.1", unused.getsockname()[1], tls=False), timeout=0.5)
        with pytest.raises(TransportError, match="refused"):
            transport.exchange("GET", "/", None, {})


def test_an_answer_that_is_no_json_object_is_no_success(api: FakeApi, make_client: MakeClient) -> None:
    api.objects[PATH] = ["not", "an", "object"]  # type: ignore[assignment]
    with pytest.raises(ApiBusy, match="no JSON object"):
        make_client(attempts=1).get(PATH)


class TestTokens:
    """A bound token changes under the client's hands."""

    def test_a_refused_token_is_read_again_once(
        self, api: FakeApi, make_client: MakeClient, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("old\n")
        api.put(PATH, LEASE)
        api.tokens = {"old"}
        client = make_client(TokenFile(str(file)))
        client.get(PATH)
        file.write_text("new\n")
        api.tokens = {"new"}
        assert client.get(PATH)["kind"] == "Lease"
        assert [one.token for one in api.seen] == ["old", "old", "new"]

    def test_a_token_that_stays_refused_is_told_without_its_text(
        self, api: FakeApi, make_client: MakeClient, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("secret-text")
        api.tokens = {"another"}
        with pytest.raises(ApiUnauthorized) as caught:
            make_client(TokenFile(str(file))).get(PATH)
        assert "secret-text" not in str(caught.value)
        assert api.count() == 1

    def test_the_file_is_read_again_after_a_minute(self, tmp_path: Path) -> None:
        now = 0.0
        file = tmp_path / "token"
        file.write_text("one")
        tokens = TokenFile(str(file), clock=lambda: now)
        assert tokens.token() == "one"
        file.write_text("two")
        now = 59.9
        assert tokens.token() == "one"
        now = 60.0
        assert tokens.token() == "two"

    def test_a_missing_token_file_is_named(self, make_client: MakeClient, tmp_path: Path) -> None:
        with pytest.raises(ApiUnreachable, match="token file"):
            make_client(TokenFile(str(tmp_path / "none")), attempts=1).get(PATH)


class _Token:
    """A token that never changes."""

    def token(self) -> str:
        return "TOP\nSECRET"

    def reread(self) -> bool:
        return False


def test_a_token_that_no_header_can_hold_is_told_and_never_shown(
    api: FakeApi, make_client: MakeClient, tmp_path: Path
) -> None:
    odd = tmp_path / "token"
    odd.write_bytes(b"TOPSECRET\xff")
    for tokens in (_Token(), TokenFile(str(odd))):
        with pytest.raises(ApiUnreachable) as caught:
            make_client(tokens).get("/api/v1/pods")
        assert "token" in str(caught.value)
        assert "TOP" not in str(caught.value)
        assert api.seen == []


def test_a_watch_never_shows_its_token_either() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        watch = Watch(Server("127.0.0.1", listener.getsockname()[1], tls=False), _Token())
        with pytest.raises(ApiUnreachable) as caught:
            list(watch.events("/api/v1/pods"))
    assert "no header can hold" in str(caught.value)
    assert "TOP" not in str(caught.value)


def test_outside_of_a_pod_the_missing_variables_are_named() -> None:
    with pytest.raises(ApiUnreachable, match="KUBERNETES_SERVICE_HOST"):
        in_cluster({})


def test_inside_a_pod_server_and_files_are_those_of_the_account() -> None:
    server, _ = in_cluster(
        {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, "/acc"
    )
    assert (server.host, server.port, server.tls, server.ca_file) == ("10.96.0.1", 6443, True, "/acc/ca.crt")


def test_pauses_are_jittered_and_bounded() -> None:
    policy = RetryPolicy(attempts=8, first_delay=1.0, longest_delay=8.0)
    assert list(policy.delays(lambda: 0.0)) == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    assert list(policy.delays(lambda: 1.0)) == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5.0), ("0", 0.0), ("Wed, 21 Oct", 0.0), (None, 0.0), ("-3", 0.0)]
)
def test_retry_after_is_read_in_its_number_form_alone(text: str | None, seconds: float) -> None:
    assert retry_after(text, 8.0) == seconds


def test_names_cannot_leave_their_path() -> None:
    assert (
        paths.leases("ns", "../../secrets/x")
        == "/apis/coordination.k8s.io/v1/namespaces/ns/leases/..%2F..%2Fsecrets%2Fx"
    )
