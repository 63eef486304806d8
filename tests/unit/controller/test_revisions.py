# SPDX-License-Identifier: MIT
"""Revisions: one for each contract, owned by its Pacto, valid under its schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.conformance.source import load_offline
from kubectl_pacto.controller.pacto_schema import revision_crd
from kubectl_pacto.controller.revision_table import decode_revision
from kubectl_pacto.controller.revisions import SUPERSEDED, Had, Revisions, revision_name
from kubectl_pacto.kube.errors import ApiConflict, ApiError, ApiForbidden
from kubectl_pacto.model.pacto import Pacto
from tests.support.builders import inline_contract
from tests.unit.controller.registry_world import RevisionApi, revision_like

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
    return Revisions(clock=lambda: 0.0).ensure(api, known, load_offline(pacto))  # type: ignore[arg-type]


KNOWN = Known(PACTO, "u1", "5")


def again(api: RevisionApi, revision: str = "") -> str:
    revisions = Revisions(api.table, clock=lambda: 0.0)
    return revisions.ensure(api, Known(PACTO, "u1", "5", revision), load_offline(PACTO))  # type: ignore[arg-type]


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
    api = RevisionApi()
    name = again(api)
    written = len(api.requests)
    assert again(api, name) == name
    assert len(api.requests) == written


def test_one_that_was_deleted_is_made_again() -> None:
    api = RevisionApi()
    name = again(api)
    api.lose(name)
    assert again(api, name) == name
    assert name in api.revisions


def test_one_whose_status_could_not_be_written_gets_it_later() -> None:
    api = RevisionApi()
    api.refuse_patches = True
    assert again(api, "before") == "before"
    api.refuse_patches = False
    name = again(api)
    assert api.revisions[name]["status"]["resolved"] is True
    assert len(api.revisions) == 1


def test_the_same_contract_in_another_artifact_is_a_revision_of_its_own() -> None:
    api, revisions = RevisionApi(), Revisions(clock=lambda: 0.0)
    api.table = revisions.table
    contract = load_offline(PACTO).validated.contract
    assert contract is not None
    made = [
        revisions.record(api, KNOWN, Had(contract, b"same", "r.example/a:1.0.0", f"sha256:{letter * 64}"))  # type: ignore[arg-type]
        for letter in "aba"
    ]
    assert made[0] == made[2] != made[1]
    assert made[1] == f"{made[0]}-bbbbbbb"
    assert api.revisions[made[1]]["spec"]["source"] == {
        "oci": "r.example/a:1.0.0",
        "digest": f"sha256:{'b' * 64}",
    }


@pytest.mark.parametrize(("kept", "deleted"), [(SUPERSEDED, 0), (SUPERSEDED + 3, 3)])
def test_of_what_nothing_means_any_more_the_newest_stay(kept: int, deleted: int) -> None:
    api, revisions = RevisionApi(), Revisions()
    for number in range(kept + 2):
        api.put(revision_like(f"r{number:04}", created=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"))
    owned = [decode_revision(raw) for raw in api.revisions.values()]
    known = Known(PACTO, "u1", "5", "r0000")
    assert revisions.prune(api, known, owned, {"r0001"}) == deleted  # type: ignore[arg-type]
    gone = {f"r{number:04}" for number in range(2, 2 + deleted)}
    assert {f"r{number:04}" for number in range(kept + 2)} - set(api.revisions) == gone


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
