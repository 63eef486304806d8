# SPDX-License-Identifier: MIT
"""What a tag means now, without its content: by HEAD, or as well as a registry lets us."""

from __future__ import annotations

import pytest

from kubectl_pacto.collect.contracts import Contracts, version_tags
from kubectl_pacto.collect.credentials import Credentials
from kubectl_pacto.collect.registry import Registry
from kubectl_pacto.collect.registry_errors import ArtifactNotFound, RegistryDenied, RegistryUnreachable
from kubectl_pacto.model.ociref import OciRef
from tests.support.bundles import CONTRACT, Answer, archive, digest, manifest, repository, serving

LAYER = archive({"pacto.yaml": CONTRACT})
PATH = "/v2/shop/manifests/1.0.0"
HELD = repository("shop", LAYER)


def ask(answers: dict[str, Answer], *, head: Answer | None = None, token: str = "") -> tuple[str, list[str]]:
    """The digest of shop:1.0.0, and the requests; `head` is how HEAD is answered where not like GET."""

    def answer(path: str, authorization: str) -> Answer:
        if token and authorization != f"Bearer {token}":
            return Answer(status=401, headers={"WWW-Authenticate": "Basic"})
        return answers.get(path, Answer(status=404))

    def answer_head(path: str, authorization: str) -> Answer:
        return head if head is not None else answer(path, authorization)

    with serving(answer, answer_head) as server:
        own = Credentials(token="good")
        found = Registry(OciRef(server.host, "shop", "1.0.0"), own, insecure=True).digest("1.0.0")
        return found, [path for path, _ in server.seen]


def test_a_head_is_enough() -> None:
    assert ask(HELD) == (digest(manifest(LAYER)), [f"HEAD {PATH}"])


def test_who_has_a_token_sends_it() -> None:
    assert ask(HELD, token="good")[0] == digest(manifest(LAYER))


@pytest.mark.parametrize(
    "head",
    [
        Answer(status=405),
        Answer(status=501),
        Answer(headers={"Docker-Content-Digest": "sha256:short"}),
        Answer(headers={"Docker-Content-Digest": "no digest at all"}),
        Answer(headers={"Docker-Content-Digest": ""}),
    ],
)
def test_without_a_digest_in_the_head_the_manifest_is_read(head: Answer) -> None:
    assert ask(HELD, head=head) == (digest(manifest(LAYER)), [f"HEAD {PATH}", PATH])


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, RegistryDenied),
        (403, RegistryDenied),
        (404, ArtifactNotFound),
        (429, RegistryUnreachable),
        (503, RegistryUnreachable),
    ],
)
def test_a_refusal_is_what_it_is_for_a_manifest(status: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        ask({}, head=Answer(status=status))


def test_what_is_known_is_returned_while_it_is_meant_and_verified_when_it_is_not() -> None:
    answers = dict(HELD)
    with serving(lambda path, _: answers.get(path, Answer(status=404))) as server:
        loader = Contracts(lambda ref, own: Registry(ref, own, insecure=True), lambda: 0.0)
        own = Credentials(token="x")
        known = loader.load(f"{server.host}/shop:1.0.0", own)
        assert loader.load(f"{server.host}/shop:1.0.0", own, known) is known
        # another tag of the same content is another resolved ref
        answers["/v2/shop/manifests/2.0.0"] = answers[PATH]
        other = loader.load(f"{server.host}/shop:2.0.0", own, known)
        assert (other.digest, other.resolved_ref) == (known.digest, f"{server.host}/shop:2.0.0")
        pinned = loader.load(f"{server.host}/shop@{known.digest}", own)
        seen = len(server.seen)
        assert loader.load(f"{server.host}/shop@{known.digest}", own, pinned) is pinned
        assert len(server.seen) == seen


def test_versions_come_highest_first_and_once() -> None:
    tags = ["1.9.0", "latest", "1.10.0", "1.10.0", "v2.0.0-rc.1", "", "2.0.0"]
    assert version_tags(tags) == ["2.0.0", "v2.0.0-rc.1", "1.10.0", "1.9.0"]
