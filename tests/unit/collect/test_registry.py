# SPDX-License-Identifier: MIT
"""A registry's answers, the hostile ones above all; and which credential goes where."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kubectl_pacto.collect import contracts as cache
from kubectl_pacto.collect import registry as module
from kubectl_pacto.collect.contracts import Bundle, Contracts, fetch_bundle, highest_tag
from kubectl_pacto.collect.credentials import Credentials, from_secret
from kubectl_pacto.collect.registry import Registry
from kubectl_pacto.collect.registry_errors import (
    ArtifactNotFound,
    BadArtifact,
    BadPullSecret,
    BadReference,
    RegistryDenied,
    RegistryError,
    RegistryUnreachable,
    Unavailable,
)
from kubectl_pacto.model.ociref import OciRef, parse_oci_ref
from tests.support.bundles import CONTRACT, MANIFEST, Answer, archive, digest, manifest, repository, serving

LAYER = archive({"pacto.yaml": CONTRACT, "api.yaml": b"openapi: 3.0.0"})
BASIC = "Basic " + base64.b64encode(b"me:secret").decode()


def contracts(credentials: Credentials | None = None, now: Callable[[], float] = lambda: 0.0) -> Contracts:
    return Contracts(lambda ref, own: Registry(ref, own or credentials, insecure=True), now)


def table(answers: dict[str, Answer]) -> Callable[[str, str], Answer]:
    return lambda path, _: answers.get(path, Answer(status=404))


def test_a_tag_is_fetched_and_its_content_verified() -> None:
    with serving(table(repository("team/shop", LAYER))) as server:
        bundle = contracts().load(f"oci://{server.host}/team/shop:1.0.0")
    assert bundle.contract == CONTRACT.decode()
    assert bundle.resolved_ref == f"{server.host}/team/shop:1.0.0"
    assert bundle.digest == digest(manifest(LAYER))


def test_a_digest_is_fetched() -> None:
    with serving(table(repository("shop", LAYER))) as server:
        bundle = contracts().load(f"{server.host}/shop@{digest(manifest(LAYER))}")
    assert "api.yaml" in bundle.files


def test_without_a_tag_the_highest_version_is_fetched() -> None:
    tags = dict.fromkeys(["latest", "1.9.0", "1.10.0", "v1.2", "nightly", "1.10.0-rc.1"], manifest(LAYER))
    with serving(table(repository("shop", LAYER, tags))) as server:
        assert contracts().load(f"oci://{server.host}/shop").resolved_ref.endswith("/shop:1.10.0")


def test_tags_are_read_page_by_page_and_never_elsewhere() -> None:
    def answer(path: str, _: str) -> Answer:
        if path == "/v2/shop/tags/list":
            return Answer(b'{"tags": ["1.0.0"]}', headers={"Link": '</v2/shop/tags/list?last=x>; rel="next"'})
        if path == "/v2/shop/tags/list?last=x":
            away = '<http://elsewhere.invalid/v2/shop/tags/list>; rel="next"'
            return Answer(b'{"tags": ["2.0.0", 5]}', headers={"Link": away})
        return Answer(status=404)

    with serving(answer) as server:
        ref = OciRef(server.host, "shop")
        assert Registry(ref, insecure=True).tags() == ["1.0.0", "2.0.0"]


def test_versions_are_compared_not_texts() -> None:
    assert highest_tag(["1.9.0", "1.10.0", "x"]) == "1.10.0"
    assert highest_tag(["x", ""]) == ""
    assert highest_tag(["1.0.0-rc.1", "0.9.0"]) == "1.0.0-rc.1"


def failing(answers: Callable[[str, str], Answer], ref: str = "shop:1.0.0", **options: Any) -> RegistryError:
    with serving(answers) as server, pytest.raises(RegistryError) as caught:
        contracts(**options).load(f"{server.host}/{ref}")
    return caught.value


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, RegistryDenied),
        (403, RegistryDenied),
        (404, ArtifactNotFound),
        (429, RegistryUnreachable),
        (500, RegistryUnreachable),
        (503, RegistryUnreachable),
    ],
)
def test_a_status_that_may_pass_is_unavailable(status: int, error: type[RegistryError]) -> None:
    found = failing(lambda *_: Answer(status=status))
    assert type(found) is error
    assert isinstance(found, Unavailable)


def test_a_registry_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(RegistryUnreachable):
        contracts().load("127.0.0.1:1/shop:1.0.0")


def test_tls_is_not_given_up() -> None:
    with serving(table(repository("shop", LAYER))) as server, pytest.raises(RegistryUnreachable):
        Registry(OciRef(server.host, "shop", "1.0.0")).manifest("1.0.0")


@pytest.mark.parametrize("text", ["", "shop", "oci://r.example/a b", "r.example/a:"])
def test_a_malformed_reference_is_invalid(text: str) -> None:
    with pytest.raises(BadReference):
        contracts().load(text)


def broken(change: Callable[[dict[str, Answer]], None]) -> RegistryError:
    answers = repository("shop", LAYER)
    change(answers)
    return failing(table(answers))


def replaced(body: bytes, kind: str = MANIFEST) -> Callable[[dict[str, Answer]], None]:
    def change(answers: dict[str, Answer]) -> None:
        answers["/v2/shop/manifests/1.0.0"] = Answer(body, headers={"Content-Type": kind})

    return change


INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (replaced(manifest()), "0 layers"),
        (replaced(manifest(LAYER, LAYER)), "2 layers"),
        (replaced(manifest(LAYER, media_type=INDEX)), "of type application/vnd.oci.image.index"),
        (replaced(b"{}"), "cannot be read"),
        (replaced(b"[]"), "cannot be read"),
        (replaced(b"[" * 100_000), "cannot be read"),
        (replaced(b"\xff"), "cannot be read"),
    ],
)
def test_a_manifest_that_is_no_bundles_is_invalid(
    change: Callable[[dict[str, Answer]], None], problem: str
) -> None:
    found = broken(change)
    assert isinstance(found, BadArtifact)
    assert problem in str(found)


def test_content_of_another_digest_is_invalid() -> None:
    answers = repository("shop", LAYER)
    answers[f"/v2/shop/blobs/{digest(LAYER)}"] = Answer(archive({"pacto.yaml": b"evil"}))
    assert isinstance(failing(table(answers)), BadArtifact)
    answers = repository("shop", LAYER)
    pinned = digest(b"something else")
    answers[f"/v2/shop/manifests/{pinned}"] = answers["/v2/shop/manifests/1.0.0"]
    assert isinstance(failing(table(answers), f"shop@{pinned}"), BadArtifact)


@pytest.mark.parametrize(
    "layer", [b"no archive", archive({"other.yaml": b""}), archive({"../pacto.yaml": CONTRACT})]
)
def test_a_layer_that_is_no_bundle_is_invalid(layer: bytes) -> None:
    assert isinstance(failing(table(repository("shop", layer))), BadArtifact)


def test_what_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANIFEST_BYTES", 10)
    found = failing(table(repository("shop", LAYER)))
    assert isinstance(found, BadArtifact)
    assert "larger than 10 bytes" in str(found)


def test_what_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", -1.0)
    assert isinstance(failing(table(repository("shop", LAYER))), RegistryUnreachable)


def test_large_bundles_of_many_references_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CACHE_BYTES", 1 << 20)
    layer = archive({"pacto.yaml": CONTRACT, "api.yaml": bytes(300 << 10)})
    loader = contracts()
    with serving(table(repository("shop", layer, {f"1.{n}.0": manifest(layer) for n in range(8)}))) as server:
        for number in range(8):
            loader.load(f"{server.host}/shop:1.{number}.0")
        assert len(loader._results) == 3
        asked = len(server.seen)
        loader.load(f"{server.host}/shop:1.7.0")  # the newest is among them
        assert len(server.seen) == asked


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n"


@pytest.mark.parametrize("at_once", [HEAD + b"\r\n", HEAD + b"X: ", b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_what_comes_byte_by_byte_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch, at_once: bytes) -> None:
    """Each byte within the time for a read: body, headers, status line, and news of an answer to come."""
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.3)
    stop = threading.Event()

    def drip(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as stream:
            stream.recv(4096)
            stream.sendall(at_once)
            while not stop.wait(0.02):
                stream.sendall(at_once if at_once.endswith(b"Continue\r\n\r\n") else b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        ref = OciRef(f"127.0.0.1:{listener.getsockname()[1]}", "shop", "1.0.0")
        began = time.monotonic()
        try:
            with pytest.raises(RegistryUnreachable):
                Registry(ref, insecure=True).manifest("1.0.0")
            assert time.monotonic() - began < 5
        finally:
            stop.set()
            thread.join(5)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=401, headers={"WWW-Authenticate": 'Bearer realm="http://[::1/token"'}),
        Answer(status=307, headers={"Location": "http://[::1/v2"}),
    ],
)
def test_an_address_that_is_none_is_an_error_of_the_registry(answer: Answer) -> None:
    with serving(lambda _path, _authorization: answer) as server, pytest.raises(Unavailable):
        contracts().load(f"{server.host}/shop:1.0.0")


def test_a_next_page_that_is_nowhere_ends_the_tags() -> None:
    listed = Answer(b'{"tags": ["1.0.0"]}', headers={"Link": '<http://[::1/v2>; rel="next"'})
    with serving(lambda _path, _authorization: listed) as server:
        assert Registry(OciRef(server.host, "shop"), insecure=True).tags() == ["1.0.0"]


def test_a_body_that_breaks_off_is_unavailable() -> None:
    cut = Answer(b"{", headers={"Content-Length": "100", "Content-Type": MANIFEST})
    assert isinstance(
        broken(lambda answers: answers.update({"/v2/shop/manifests/1.0.0": cut})), RegistryError
    )


def guarded(answers: dict[str, Answer], wanted: str, challenge: str) -> Callable[[str, str], Answer]:
    def answer(path: str, authorization: str) -> Answer:
        if authorization != wanted:
            return Answer(status=401, headers={"WWW-Authenticate": challenge})
        return answers.get(path, Answer(status=404))

    return answer


def test_basic_credentials_are_sent_only_when_asked_for() -> None:
    answers = guarded(repository("shop", LAYER), BASIC, 'Basic realm="x"')
    with serving(answers) as server:
        contracts().load(f"{server.host}/shop:1.0.0", Credentials("me", "secret"))
        assert server.seen[0][1] == ""
        assert {authorization for _, authorization in server.seen[1:]} == {BASIC}
        with pytest.raises(RegistryDenied):
            contracts().load(f"{server.host}/shop:1.0.0", Credentials("me", "wrong"))
        with pytest.raises(RegistryDenied):
            contracts().load(f"{server.host}/shop:1.0.0")


def test_a_token_is_asked_for_where_the_registry_says() -> None:
    with serving(lambda *_: Answer(b'{"token": "t"}')) as tokens:
        challenge = f'Bearer realm="http://{tokens.host}/token",service="reg",scope="repository:shop:pull"'
        with serving(guarded(repository("shop", LAYER), "Bearer t", challenge)) as server:
            contracts().load(f"{server.host}/shop:1.0.0", Credentials("me", "secret"))
        assert tokens.seen == [("/token?service=reg&scope=repository%3Ashop%3Apull", BASIC)]
        assert BASIC not in server.authorizations()


def test_a_token_of_ones_own_is_sent_at_once() -> None:
    answers = guarded(repository("shop", LAYER), "Bearer own", "Bearer realm=x")
    with serving(answers) as server:
        contracts().load(f"{server.host}/shop:1.0.0", Credentials(token="own"))
        assert server.authorizations() == {"Bearer own"}
        with pytest.raises(RegistryDenied):
            contracts().load(f"{server.host}/shop:1.0.0", Credentials(token="wrong"))


def test_a_redirect_carries_no_credential_elsewhere() -> None:
    with serving(lambda *_: Answer(LAYER)) as storage:
        answers = repository("shop", LAYER)
        blob = f"/v2/shop/blobs/{digest(LAYER)}"
        answers[blob] = Answer(status=307, headers={"Location": f"http://{storage.host}/blob"})
        with serving(guarded(answers, BASIC, 'Basic realm="x"')) as server:
            contracts().load(f"{server.host}/shop:1.0.0", Credentials("me", "secret"))
        assert storage.seen == [("/blob", "")]


def test_a_redirect_of_a_token_service_carries_no_credential_elsewhere() -> None:
    with serving(lambda *_: Answer(b'{"token": "t"}')) as thief:
        away = Answer(status=302, headers={"Location": f"http://{thief.host}/"})
        with serving(lambda *_: away) as tokens:
            challenge = f'Bearer realm="http://{tokens.host}/token"'
            with serving(guarded(repository("shop", LAYER), "Bearer t", challenge)) as server:
                contracts().load(f"{server.host}/shop:1.0.0", Credentials("me", "secret"))
        assert thief.authorizations() == {""}


def test_redirects_end() -> None:
    loop = Answer(status=302, headers={"Location": "/v2/shop/manifests/1.0.0"})
    assert "without end" in str(failing(lambda *_: loop))


@pytest.mark.parametrize("away", ["ftp://x.example/", "file:///etc/passwd", "gopher://x.example/"])
def test_a_redirect_to_another_scheme_is_refused(away: str) -> None:
    assert isinstance(failing(lambda *_: Answer(status=302, headers={"Location": away})), RegistryUnreachable)


def test_a_token_service_without_tls_is_refused_for_a_registry_with_it() -> None:
    registry = Registry(OciRef("r.example", "shop"), Credentials("me", "secret"))
    with pytest.raises(RegistryDenied, match="TLS"):
        registry._authorize('Bearer realm="http://t.example/"')


def secret(kind: str = "Opaque", **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": "pull", "namespace": "shop"}, "type": kind, "data": encoded}


def docker(auths: Any) -> dict[str, Any]:
    return secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": json.dumps({"auths": auths})})


AUTH = base64.b64encode(b"me:se:cret").decode()


@pytest.mark.parametrize(
    ("raw", "host", "wanted"),
    [
        (secret(token="t"), "r.example", Credentials(token="t")),
        (secret(token="t", username="me", password="p"), "r.example", Credentials(token="t")),
        (secret(username="me", password="p\n"), "r.example", Credentials("me", "p")),
        (secret(username="me", password="p", registry="R.example"), "r.example", Credentials("me", "p")),
        (secret(token="t", registry="docker.io"), "index.docker.io", Credentials(token="t")),
        (docker({"r.example": {"auth": AUTH}}), "r.example", Credentials("me", "se:cret")),
        (
            docker({"https://r.example/v2/": {"username": "me", "password": "p"}}),
            "r.example",
            Credentials("me", "p"),
        ),
        (docker({"https://index.docker.io/v1/": {"auth": AUTH}}), "docker.io", Credentials("me", "se:cret")),
        (docker({"other.example": {"auth": AUTH}}), "r.example", None),
    ],
)
def test_a_pull_secret_of_each_kind(raw: dict[str, Any], host: str, wanted: Credentials | None) -> None:
    assert from_secret(raw, host) == wanted


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (secret(), "neither token"),
        (secret(username="me"), "neither token"),
        (secret(token="t", registry="other.example"), "is for the registry other.example, not for r.example"),
        (secret("kubernetes.io/dockerconfigjson"), "no .dockerconfigjson"),
        (docker(5), "no .dockerconfigjson"),
        (docker({"r.example": {"auth": "!"}}), "not base64 text"),
        (docker({"r.example": {}}), "no username and password for r.example"),
        ({"metadata": {}, "data": {"token": "%%%"}}, "not base64 text"),
        (secret(token="TOP\nSECRET"), "no header can hold"),
        (secret(token="TOPSECRETé"), "no header can hold"),
        (docker({"r.example": {"registrytoken": "TOP\rSECRET"}}), "no header can hold"),
    ],
)
def test_a_pull_secret_that_is_none_says_what_it_lacks(raw: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadPullSecret) as caught:
        from_secret(raw, "r.example")
    assert problem in str(caught.value)
    assert "se:cret" not in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_credentials_are_never_shown() -> None:
    assert "secret" not in repr(Credentials("me", "secret", "secret"))


class Counting:
    """A source that counts how often it is asked."""

    def __init__(self) -> None:
        self.tags_read = self.manifests_read = 0
        self.is_down = False

    def tags(self) -> list[str]:
        self.tags_read += 1
        return ["1.0.0"]

    def digest(self, _: str) -> str:
        return digest(manifest(LAYER))

    def manifest(self, _: str) -> tuple[bytes, str]:
        self.manifests_read += 1
        if self.is_down:
            raise RegistryUnreachable(ref="x", problem="down")
        return manifest(LAYER), MANIFEST

    def blob(self, *_: object) -> bytes:
        return LAYER


def test_results_failures_and_tags_are_remembered_for_their_time() -> None:
    now, source = [0.0], Counting()
    loader = Contracts(lambda *_: source, lambda: now[0])
    for moment, tags, manifests in ((0, 1, 1), (29, 1, 1), (30, 1, 2), (299, 1, 3), (330, 2, 4)):
        now[0] = moment
        loader.load("r.example/shop")
        assert (source.tags_read, source.manifests_read) == (tags, manifests), moment
    source.is_down = True
    now[0] = 400
    for _ in range(2):
        with pytest.raises(RegistryUnreachable):
            loader.load("r.example/shop")
    assert source.manifests_read == 5


def test_nothing_fetched_with_credentials_is_remembered() -> None:
    source = Counting()
    loader = Contracts(lambda *_: source, lambda: 0.0)
    for _ in range(2):
        loader.load("r.example/shop", Credentials("me", "p"))
    assert (source.tags_read, source.manifests_read) == (2, 2)
    loader.load("r.example/shop")
    assert source.manifests_read == 3


def test_the_cache_stays_small() -> None:
    loader = Contracts(lambda *_: Counting(), lambda: 0.0)
    for number in range(250):
        loader.load(f"r.example/shop{number}")
    assert len(loader._results) <= 100
    assert len(loader._tags) <= 100


def test_a_bundle_names_what_it_was_resolved_to() -> None:
    ref = parse_oci_ref("oci://r.example/shop:1.0.0")
    assert ref is not None
    assert fetch_bundle(ref, Counting()) == Bundle(
        {"pacto.yaml": CONTRACT, "api.yaml": b"openapi: 3.0.0"},
        "r.example/shop:1.0.0",
        digest(manifest(LAYER)),
    )
