# SPDX-License-Identifier: MIT
"""Pull secrets that come, change and go have their Pactos checked; nothing else of a Secret is asked for."""

from __future__ import annotations

import threading

import pytest

from kubectl_pacto.collect.live import Table
from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.controller import pull_secrets as module
from kubectl_pacto.controller.pull_secrets import PullSecrets
from kubectl_pacto.kube.client import METADATA_ONLY
from kubectl_pacto.kube.errors import ApiBusy
from kubectl_pacto.kube.reflector import Key
from tests.unit.controller.registry_world import Raw, RevisionApi, known


class World:
    """Pactos, their secrets, and who was told."""

    def __init__(self) -> None:
        self.api = RevisionApi()
        self.pactos: Table[Known] = Table()
        self.changed: list[Key] = []
        self.secrets = PullSecrets(self.pactos, self.changed.append)

    def has(self, one: Known) -> None:
        """A Pacto is there."""
        self.pactos.put((one.pacto.namespace, one.pacto.name), one)

    def round(self) -> list[str]:
        """One round; the names of the Pactos that it had checked."""
        self.changed.clear()
        self.secrets.round(self.api, threading.Event())  # type: ignore[arg-type]
        return sorted(name for _, name in self.changed)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(module, "GAP_SECONDS", 0)
    made = World()
    for name in ("a", "b"):
        made.has(known("oci://r.example/x:1.0.0", name=name, pull_secret="mine"))
    made.has(known("oci://r.example/x:1.0.0", name="c", pull_secret="other"))
    made.has(known("oci://r.example/x:1.0.0", name="d"))
    made.has(known("oci://r.example/x:1.0.0", name="e", pull_secret="unused", inline="x"))
    made.api.secret("mine", "1", "x")
    return made


def test_a_change_has_those_checked_that_name_it(world: World) -> None:
    assert world.round() == []
    assert world.round() == []
    world.api.secret("mine", "2", "y")
    assert world.round() == ["a", "b"]
    assert world.round() == []


def test_one_that_comes_and_one_that_goes(world: World) -> None:
    world.round()
    world.api.secret("other", "7", "x")
    del world.api.secrets["/api/v1/namespaces/ns/secrets/mine"]
    assert world.round() == ["a", "b", "c"]


def test_one_that_came_before_the_first_look_is_noticed_by_who_waits_for_it(world: World) -> None:
    world.has(known("oci://r.example/x", name="w", pull_secret="mine", status={"contractStatus": "Unknown"}))
    assert world.round() == ["w"]
    assert world.round() == []


def test_metadata_alone_and_each_once(world: World) -> None:
    world.round()
    assert world.api.requests == [
        ("GET", f"/api/v1/namespaces/ns/secrets/{name}", METADATA_ONLY) for name in ("mine", "other")
    ]


def test_a_look_that_fails_is_no_change(world: World) -> None:
    world.round()
    get = world.api.get

    def fail(path: str, *, accept: str = "") -> Raw:
        raise ApiBusy(method="GET", path=path, status=503, problem="busy")

    world.api.get = fail  # type: ignore[method-assign]
    assert world.round() == []
    world.api.get = get  # type: ignore[method-assign]
    assert world.round() == []


def test_secrets_that_nobody_names_are_forgotten(world: World) -> None:
    world.round()
    for name in "abcde":
        world.pactos.drop(("ns", name))
    world.round()
    assert not world.secrets._versions
