# SPDX-License-Identifier: MIT
"""Revisions: one for each contract, owned by its Pacto, valid under its schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.conformance.source import load_offline
from kubectl_pacto.controller.pacto_schema import revision_crd
from kubectl_pacto.controller.revisions import Revisions, revision_name
from kubectl_pacto.kube.errors import ApiConflict, ApiError, ApiForbidden
from kubectl_pacto.model.pacto import Pacto
from tests.support.builders import inline_contract

PACTO = Pacto("ns", "shop", inline=inline_contract({"interfaces": ["api"]}))


class Api:
    """What was written."""

    def __init__(self, error: type[ApiError] | None = None) -> None:
        self.error = error
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.patches: list[tuple[str, dict[str, Any]]] = []

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.error is not None and path.endswith("pactorevisions"):
            raise self.error(method="POST", path=path, problem="no")
        self.posts.append((path, body))
        return body

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.patches.append((path, body))
        return body


def ensure(api: Api, revision: str = "", pacto: Pacto = PACTO) -> str:
    known = Known(pacto, "u1", "5", revision)
    return Revisions(lambda: 0.0).ensure(api, known, load_offline(pacto))  # type: ignore[arg-type]


def test_a_contract_seen_first_becomes_a_revision() -> None:
    api = Api()
    name = ensure(api)
    (_, made), (_, event) = api.posts
    assert made["metadata"]["name"] == name
    assert name.startswith("shop-1-0-0-")
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert made["metadata"]["labels"] == {
        "pacto.trianalab.io/pacto": "shop",
        "pacto.trianalab.io/version": "1.0.0",
    }
    assert event["reason"] == "RevisionCreated"
    ((path, status),) = api.patches
    assert path.endswith(f"/pactorevisions/{name}/status")
    (version,) = revision_crd()["spec"]["versions"]
    jsonschema.validate({**made, **status}, version["schema"]["openAPIV3Schema"])


def test_the_same_contract_again_asks_nothing_of_the_api() -> None:
    name, api = ensure(Api()), Api()
    assert ensure(api, name) == name
    assert api.posts == []


def test_a_contract_that_comes_back_is_its_old_revision() -> None:
    name = ensure(Api())
    api = Api(ApiConflict)
    assert ensure(api, "shop-2-0-0-abcdefg") == name
    assert api.posts == []


def test_a_refusal_keeps_the_last_one() -> None:
    assert ensure(Api(ApiForbidden), "old") == "old"


def test_no_contract_no_revision() -> None:
    api = Api()
    assert ensure(api, "old", Pacto("ns", "shop", inline="pactoVersion: [")) == "old"
    assert ensure(api, "", Pacto("ns", "shop", oci="oci://r.example/a")) == ""
    assert api.posts == []


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.2.3", "shop-1-2-3-0123456"),
        ("1.0.0-RC.1+build_5", "shop-1-0-0-rc-1-build-5-0123456"),
        ("", "shop-unknown-0123456"),
    ],
)
def test_a_version_becomes_part_of_a_name(version: str, name: str) -> None:
    assert revision_name("shop", version, "0123456789") == name


def test_a_long_name_is_cut_and_keeps_its_hash() -> None:
    name = revision_name("x" * 300, "1.0.0", "0123456789")
    assert len(name) == 253
    assert name.endswith("-0123456")
