# SPDX-License-Identifier: MIT
"""A registry's tags as revisions: made once, told when one is overwritten, and cheap to look at again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kubectl_pacto.collect.live import Table
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.controller import mirror as module
from kubectl_pacto.controller.loader import contracts
from kubectl_pacto.controller.mirror import Mirror
from kubectl_pacto.controller.revisions import Revisions
from kubectl_pacto.kube.reflector import Key
from tests.support.bundles import Answer
from tests.unit.controller.registry_world import Repository, RevisionApi, contract, known, registry


class World:
    """One Pacto shop, its registry, and rounds of the mirror."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.api = RevisionApi()
        self.pactos: Table[Known] = Table()
        self.moved: list[Key] = []
        self.now = 0.0
        self.start()

    def start(self) -> None:
        """A process begins, which remembers nothing."""
        host = (self.repository.server.host,)
        revisions = Revisions(self.api.table, clock=lambda: 0.0)
        self.mirror = Mirror(
            self.pactos, revisions, contracts(host), moved=self.moved.append, clock=lambda: self.now
        )

    def has(self, one: Known) -> None:
        """A Pacto is there."""
        self.pactos.put((one.pacto.namespace, one.pacto.name), one)

    def round(self) -> list[str]:
        """One round; the requests that the registry saw."""
        self.repository.seen()
        self.now += 300
        self.mirror.round(self.api, threading.Event())  # type: ignore[arg-type]
        return self.repository.seen()

    @property
    def sources(self) -> list[str]:
        """The tags that revisions are of."""
        return sorted(raw["spec"]["source"]["oci"].rpartition(":")[2] for raw in self.api.revisions.values())

    @property
    def told(self) -> list[str]:
        """The reasons of the events."""
        return [event["reason"] for event in self.api.events]


@pytest.fixture
def world() -> Iterator[World]:
    with registry() as repository:
        yield World(repository)


def test_every_version_becomes_a_revision_and_is_compared_by_its_digest_then(world: World) -> None:
    first = world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.hold("1.1.0", contract("1.1.0"))
    world.repository.hold("edge", contract("9.9.9"))
    world.has(known(world.repository.ref))
    world.round()
    assert world.sources == ["1.0.0", "1.1.0"]
    (made,) = [one for one in world.api.revisions.values() if one["spec"]["version"] == "1.0.0"]
    assert made["spec"]["source"]["digest"] == first
    assert made["status"]["resolved"] is True
    assert world.told == ["RevisionCreated", "RevisionCreated"]
    assert world.round() == [
        "/v2/team/shop/tags/list",
        "HEAD /v2/team/shop/manifests/1.1.0",
        "HEAD /v2/team/shop/manifests/1.0.0",
    ]
    assert len(world.api.revisions) == 2


def test_a_tag_that_is_overwritten_is_told_once_and_is_another_revision(world: World) -> None:
    old = world.repository.hold("1.0.0", contract("1.0.0"))
    world.has(known(f"{world.repository.ref}:1.0.0"))
    world.round()
    new = world.repository.hold("1.0.0", contract("1.0.0") + b"# another\n")
    world.round()
    world.round()
    assert world.told.count("TagOverwritten") == 1
    (event,) = [one for one in world.api.events if one["reason"] == "TagOverwritten"]
    assert event["type"] == "Warning"
    assert old[7:19] in event["message"]
    assert new[7:19] in event["message"]
    assert old[7:20] not in event["message"]
    assert len(world.api.revisions) == 2
    assert world.moved == [("ns", "shop")]


def test_another_artifact_with_the_same_contract_is_overwritten_too(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.has(known(world.repository.ref))
    world.round()
    world.repository.hold("1.0.0", contract("1.0.0"), **{"openapi.yaml": b"openapi: 3.0.0"})
    world.round()
    world.start()
    world.round()
    assert world.told.count("TagOverwritten") == 1
    assert len(world.api.revisions) == 2


def test_a_restart_tells_nothing_again_and_notices_what_changed_meanwhile(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.has(known(world.repository.ref))
    world.round()
    world.start()
    assert all(path.startswith("HEAD") or path.endswith("list") for path in world.round())
    assert world.told == ["RevisionCreated"]
    world.repository.hold("1.0.0", contract("1.0.0") + b"#\n")
    world.start()
    world.round()
    assert world.told.count("TagOverwritten") == 1


def test_a_deleted_revision_is_made_again(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.has(known(world.repository.ref))
    world.round()
    (name,) = world.api.revisions
    world.api.lose(name)
    world.mirror.revision_lost(("ns", "shop"))
    world.round()
    assert list(world.api.revisions) == [name]


def test_what_needs_no_mirror_asks_no_registry(world: World) -> None:
    digest = world.repository.hold("1.0.0", contract("1.0.0"))
    world.has(known(f"{world.repository.ref}@{digest}"))
    world.has(known(world.repository.ref, name="inline", inline="pactoVersion: '2.0'"))
    world.has(known("oci://not a ref", name="bad"))
    world.has(known("", name="none"))
    assert world.round() == []


def test_pactos_of_one_repository_ask_once(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    for number in range(3):
        world.has(known(world.repository.ref, name=f"shop-{number}"))
    world.round()
    asked = world.round()
    assert len(asked) == len(set(asked)) == 2
    assert len(world.api.revisions) == 3


def test_a_registry_that_is_down_is_asked_once_a_round_and_told_once(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    for number in range(3):
        world.has(known(world.repository.ref, name=f"shop-{number}"))
    world.repository.down = Answer(status=503)
    assert len(world.round()) == 1
    assert world.told == ["ContractUnavailable"] * 3
    world.round()
    assert len(world.told) == 3
    world.repository.down = None
    world.round()
    assert world.sources == ["1.0.0"] * 3


def test_what_the_status_says_already_is_not_told_twice(world: World) -> None:
    world.repository.down = Answer(status=403)
    world.has(known(world.repository.ref, status={"contractStatus": "Unknown"}))
    world.round()
    assert world.told == []


def test_a_pull_secret_of_its_own_is_used_and_no_other(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.token = "letmein"
    world.api.secret("mine", "1", "letmein")
    world.has(known(world.repository.ref, pull_secret="mine"))
    world.has(known(world.repository.ref, name="other"))
    world.round()
    assert world.sources == ["1.0.0"]
    assert world.told == ["ContractUnavailable", "RevisionCreated"]
    secrets = {path for method, path, _ in world.api.requests if method == "GET"}
    assert secrets == {"/api/v1/namespaces/ns/secrets/mine"}


def test_a_slow_registry_gets_its_share_of_a_round_and_the_rest_in_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HOST_SECONDS", 25.0)
    for number in range(5):
        world.repository.hold(f"1.{number}.0", contract(f"1.{number}.0"))
    world.has(known(world.repository.ref))
    answer = world.repository.answer

    def slowly(path: str, authorization: str) -> Answer:
        world.now += 4
        return answer(path, authorization)

    world.repository.answer = slowly  # type: ignore[method-assign]
    with_all = 0
    for _ in range(6):
        world.mirror.round(world.api, threading.Event())  # type: ignore[arg-type]
        with_all += len(world.api.revisions) == 5
    assert world.sources == [f"1.{number}.0" for number in range(5)]
    assert with_all < 6  # it did take several rounds


def test_a_contract_that_is_invalid_is_no_revision(world: World) -> None:
    world.repository.hold("1.0.0", b"pactoVersion: [")
    world.repository.hold("1.1.0", contract("1.1.0"))
    world.has(known(world.repository.ref))
    world.round()
    assert world.sources == ["1.1.0"]


def test_a_broken_artifact_is_told_as_invalid(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.answers["/v2/team/shop/manifests/1.0.0"] = Answer(b"{}")
    world.has(known(world.repository.ref))
    world.round()
    assert world.told == ["ContractInvalid"]


def test_a_tag_that_is_no_contract_keeps_no_other_from_being_mirrored(world: World) -> None:
    bad = world.repository.hold("2.0.0", contract("2.0.0"))
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.hold("1.1.0", contract("1.1.0"))
    for reference in ("2.0.0", bad):
        world.repository.answers[f"/v2/team/shop/manifests/{reference}"] = Answer(b"{}")
    world.repository.answers["/v2/team/shop/manifests/1.1.0"] = Answer(status=404)
    world.has(known(world.repository.ref))
    world.round()
    assert world.sources == ["1.0.0"]
    assert world.told == ["ContractInvalid", "RevisionCreated"]
    asked = world.round()
    assert "/v2/team/shop/manifests/2.0.0" not in asked  # its content is fetched when it is another
    assert world.told == ["ContractInvalid", "RevisionCreated"]
    world.repository.hold("2.0.0", contract("2.0.0"))
    world.repository.hold("1.1.0", contract("1.1.0"))
    world.round()
    assert world.sources == ["1.0.0", "1.1.0", "2.0.0"]


def test_one_repository_that_fails_does_not_keep_its_registry_from_the_others(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.answers["/v2/team/ashop/tags/list"] = Answer(b"<html>")
    world.has(known(world.repository.ref.replace("team/shop", "team/ashop"), name="a"))
    world.has(known(world.repository.ref, name="b"))
    for _ in range(3):
        world.round()
    assert world.sources == ["1.0.0"]


def test_one_repository_that_takes_all_the_time_lets_the_others_have_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HOST_SECONDS", 10.0)
    for number in range(5):
        world.repository.hold(f"1.{number}.0", contract(f"1.{number}.0"))
    world.repository.answers["/v2/team/zshop/tags/list"] = Answer(b'{"tags": ["3.0.0"]}')
    for path, found in list(world.repository.answers.items()):
        if path.endswith("manifests/1.0.0"):
            world.repository.answers["/v2/team/zshop/manifests/3.0.0"] = found
        elif "/blobs/" in path:
            world.repository.answers[path.replace("team/shop", "team/zshop")] = found
    world.has(known(world.repository.ref, name="a"))
    world.has(known(world.repository.ref.replace("team/shop", "team/zshop"), name="z"))
    answer = world.repository.answer

    def slowly(path: str, authorization: str) -> Answer:
        world.now += 4 if "team/shop" in path else 0
        return answer(path, authorization)

    world.repository.answer = slowly  # type: ignore[method-assign]
    for _ in range(3):
        world.round()
    assert "3.0.0" in world.sources


def test_a_tag_that_went_keeps_its_revision(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.hold("1.1.0", contract("1.1.0"))
    world.has(known(world.repository.ref))
    world.round()
    world.repository.drop("1.0.0")
    world.round()
    assert world.sources == ["1.0.0", "1.1.0"]


def test_a_tag_that_is_overwritten_for_ever_does_not_fill_the_cluster(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_pacto.controller.revisions.SUPERSEDED", 3)
    world.has(known(world.repository.ref))
    for number in range(10):
        world.repository.hold("1.0.0", contract("1.0.0") + b"#" * number)
        world.round()
    world.round()
    assert len(world.api.revisions) == 4


@pytest.mark.parametrize(("pactos", "limit"), [(1, 100), (2000, 100), (10_000, 20), (1_000_000, 5)])
def test_many_pactos_have_fewer_versions_each(pactos: int, limit: int) -> None:
    assert module._limit(pactos) == limit


def test_the_highest_versions_are_those_that_are_mirrored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIRRORED_TAGS", 3)
    monkeypatch.setattr(module, "FEWEST_TAGS", 1)
    for version in ("1.9.0", "1.10.0", "0.1.0", "2.0.0", "2.0.0-rc.1"):
        world.repository.hold(version, contract(version))
    world.has(known(world.repository.ref))
    world.round()
    assert world.sources == ["1.10.0", "2.0.0", "2.0.0-rc.1"]
