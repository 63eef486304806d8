# SPDX-License-Identifier: MIT
"""Contracts that are fetched beside the checks: slow or dead registries delay and change no verdict."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from kubectl_pacto.conformance.source import Loaded
from kubectl_pacto.controller import downloads as module
from kubectl_pacto.controller.downloads import Downloads
from kubectl_pacto.controller.loader import ContractLoader, contracts
from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.model.pacto import Pacto
from tests.support.bundles import Answer
from tests.unit.controller.registry_world import Repository, RevisionApi, contract, registry

PATIENCE = 10.0
T = TypeVar("T")


class World:
    """Downloads with threads of their own, by a clock of the test's."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.api = RevisionApi()
        self.now = 0.0
        self.changed: list[Key] = []
        # the cache behind it would hide what is asked again
        made = contracts((repository.server.host,))
        made._clock = lambda: self.now
        self.downloads = Downloads(made, self.changed.append, clock=lambda: self.now)
        self.loader = ContractLoader(self.downloads)
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._work) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def _work(self) -> None:
        self.downloads.work(self.api, self.stop)  # type: ignore[arg-type]

    def end(self) -> None:
        """End the threads."""
        self.stop.set()
        self.downloads.close()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def get(self, pacto: Pacto) -> Loaded:
        """The contract, once there is one."""
        return until(lambda: self.loader.load(pacto))

    def later(self, pacto: Pacto, seconds: float = 31) -> Loaded:
        """The contract that a check gets after a while, once what it set going has ended."""
        self.now += seconds
        self.loader.load(pacto)
        until(lambda: not any(entry.is_asked for entry in self.downloads._entries.values()))
        return self.get(pacto)


def until(condition: Callable[[], T | None]) -> T:
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


@pytest.fixture
def world() -> Iterator[World]:
    with registry() as repository:
        made = World(repository)
        yield made
        repository.gate.set()
        made.end()


def shop(world: World, tag: str = ":1.0.0", **more: Any) -> Pacto:
    return Pacto("ns", "shop", oci=f"{world.repository.ref}{tag}", **more)


def version(loaded: Loaded) -> str:
    assert loaded.validated.contract is not None, loaded
    return loaded.validated.contract.version


def test_the_first_time_there_is_nothing_and_then_it_is_told(world: World) -> None:
    digest = world.repository.hold("1.0.0", contract("1.0.0"))
    assert world.loader.load(shop(world)) is None
    until(lambda: world.changed == [("ns", "shop")])
    loaded = world.get(shop(world))
    assert version(loaded) == "1.0.0"
    assert loaded.digest == digest


def test_a_slow_registry_keeps_no_check_waiting(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.get(shop(world))
    world.repository.gate.clear()
    world.now += 31
    began = time.monotonic()
    for _ in range(100):
        assert version(world.get(shop(world))) == "1.0.0"
    assert world.loader.load(Pacto("ns", "inline", inline="pactoVersion: '2.0'")) is not None
    assert time.monotonic() - began < 2  # the registry would have taken ten seconds


def test_a_slow_registry_holds_up_no_other(world: World) -> None:
    world.repository.gate.clear()
    for number in range(10):
        world.loader.load(Pacto("ns", f"slow-{number}", oci=f"{world.repository.ref}:{number}.0.0"))
    with registry() as other:
        other.hold("1.0.0", contract("1.0.0"))
        host = other.server.host.replace("127.0.0.1", "localhost")
        pacto = Pacto("ns", "quick", oci=f"{host}/team/shop:1.0.0")
        # TLS is asked of it, which it does not speak: an answer all the same
        assert until(lambda: world.loader.load(pacto)).unavailable


def test_a_registry_that_went_down_changes_no_verdict(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    before = world.get(shop(world))
    world.repository.down = Answer(status=503)
    with caplog.at_level(logging.WARNING):
        assert world.later(shop(world)) is before
    assert "status 503" in caplog.text
    assert world.changed == [("ns", "shop")]


def test_one_that_was_never_reached_leaves_the_contract_unknown(world: World) -> None:
    world.repository.down = Answer(status=503)
    assert "503" in world.get(shop(world)).unavailable
    world.repository.down = None
    world.repository.hold("1.0.0", contract("1.0.0"))
    assert version(world.later(shop(world))) == "1.0.0"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_a_registry_says_stands_also_when_it_refuses(world: World, status: int) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.get(shop(world))
    world.repository.down = Answer(status=status)
    assert world.later(shop(world)).unavailable
    assert world.changed == [("ns", "shop")] * 2


def test_a_moved_tag_has_the_pacto_checked_again_and_an_unmoved_one_costs_a_head(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.get(shop(world))
    world.repository.seen()
    world.later(shop(world))
    assert world.repository.seen() == ["HEAD /v2/team/shop/manifests/1.0.0"]
    world.repository.hold("1.0.0", contract("1.0.1"))
    assert version(world.later(shop(world))) == "1.0.1"
    assert world.changed == [("ns", "shop")] * 2


def test_a_digest_is_asked_for_once(world: World) -> None:
    digest = world.repository.hold("1.0.0", contract("1.0.0"))
    pacto = shop(world, f"@{digest}")
    world.get(pacto)
    world.repository.seen()
    assert version(world.later(pacto, 100_000)) == "1.0.0"
    assert world.repository.seen() == []


def test_another_reference_or_override_is_another_contract(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.hold("2.0.0", contract("2.0.0"))
    world.get(shop(world))
    assert world.loader.load(shop(world, ":2.0.0")) is None
    assert version(world.get(shop(world, ":2.0.0"))) == "2.0.0"
    overridden = shop(world, ":2.0.0", overrides=(("nosuch", {"a": "b"}),))
    assert world.get(overridden).validated.errors


def test_a_pull_secret_that_changed_is_used_at_once(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.token = "new"
    world.api.secret("mine", "1", "old")
    pacto = shop(world, pull_secret="mine")
    assert world.get(pacto).unavailable
    world.api.secret("mine", "2", "new")
    world.downloads.expire(("ns", "shop"))
    until(lambda: len(world.changed) == 2)
    assert version(world.get(pacto)) == "1.0.0"


def test_a_secret_that_changes_while_it_is_used_is_used_again(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.token = "new"
    world.api.secret("mine", "1", "old")
    world.repository.gate.clear()
    pacto = shop(world, pull_secret="mine")
    world.loader.load(pacto)
    until(lambda: any(entry.is_running for entry in world.downloads._entries.values()))
    until(lambda: len(world.api.requests) == 1)
    world.api.secret("mine", "2", "new")
    world.downloads.expire(("ns", "shop"))
    world.repository.gate.set()
    until(lambda: (found := world.loader.load(pacto)) is not None and found.validated.contract is not None)


def test_no_credential_and_no_other_secret_is_read_or_said(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    world.repository.token = "right"
    world.api.secret("mine", "1", "hush-hush")
    world.api.secret("theirs", "1", "right")
    with caplog.at_level(logging.DEBUG):
        loaded = world.get(shop(world, pull_secret="mine"))
        world.get(Pacto("ns", "open", oci=f"{world.repository.ref}:1.0.0"))
    assert loaded.unavailable
    assert "hush" not in caplog.text + str(loaded)
    assert {path for _, path, _ in world.api.requests} == {"/api/v1/namespaces/ns/secrets/mine"}


@pytest.mark.parametrize(
    ("oci", "is_unavailable"), [("oci://not a ref", False), ("oci://127.0.0.1:1/a/b:1.0.0", True)]
)
def test_a_bad_reference_is_invalid_and_an_absent_host_is_not(
    world: World, oci: str, is_unavailable: bool
) -> None:
    loaded = world.get(Pacto("ns", "shop", oci=oci))
    assert bool(loaded.unavailable) is is_unavailable
    assert bool(loaded.validated.errors) is not is_unavailable


def test_a_missing_pull_secret_is_named(world: World) -> None:
    assert "pull secret mine" in world.get(shop(world, pull_secret="mine")).unavailable


def test_a_pacto_that_goes_leaves_nothing(world: World) -> None:
    world.repository.hold("1.0.0", contract("1.0.0"))
    for number in range(20):
        pacto = Pacto("ns", str(number), oci=f"{world.repository.ref}:1.0.0")
        world.get(pacto)
        world.loader.forget(("ns", str(number)))
    assert not world.downloads._entries
    assert not world.downloads._lanes


def test_what_no_check_reads_is_not_kept(world: World) -> None:
    text = contract("1.0.0") + (
        b"interfaces: [{name: api, type: openapi, ref: api.yaml}]\n"
        b"configurations: [{name: plain, required: true, schema: plain.json}]\n"
        b"policies: [{name: house, schema: house.json}]\n"
    )
    files = {"api.yaml": b"openapi: 3.0.0", "plain.json": b"{}", "house.json": b"{}", "README.md": b"x"}
    world.repository.hold("1.0.0", text, **files)
    loaded = world.get(shop(world))
    assert loaded.validated.errors == ()
    (entry,) = world.downloads._entries.values()
    assert entry.bundle is not None
    assert loaded.files is not None
    assert set(loaded.files) == set(entry.bundle.files) == {"pacto.yaml", "plain.json", "house.json"}
    assert world.later(shop(world)) is loaded


def test_pactos_of_one_contract_do_not_see_what_another_kept_of_it(world: World) -> None:
    text = contract("1.0.0") + b"interfaces: [{name: api, type: openapi, ref: api.yaml}]\n"
    world.repository.hold("1.0.0", text, **{"api.yaml": b"openapi: 3.0.0"})
    first = world.get(shop(world))
    assert world.later(shop(world)) is first  # asked again, with the part that was kept
    second = world.get(Pacto("ns", "second", oci=f"{world.repository.ref}:1.0.0"))
    assert second.validated.errors == ()
    assert world.later(shop(world)) is first


def test_bundles_that_are_too_old_are_not_kept_for_others_either(world: World) -> None:
    for number in range(5):
        world.repository.hold(f"{number}.0.0", contract(f"{number}.0.0"))
        world.get(Pacto("ns", str(number), oci=f"{world.repository.ref}:{number}.0.0"))
        world.now += 31
    assert len(world.downloads._contracts._results) == 1


def test_many_threads_share_one_cache(world: World) -> None:
    for number in range(60):
        world.repository.hold(f"{number}.0.0", contract(f"{number}.0.0"))
    pactos = [Pacto("ns", str(n), oci=f"{world.repository.ref}:{n}.0.0") for n in range(60)]
    for _ in range(3):
        world.now += 31
        for pacto in pactos:
            world.loader.load(pacto)
        for pacto in pactos:
            assert not world.get(pacto).unavailable


def test_a_fault_of_ours_ends_no_thread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "loaded_bundle", broken)
    world.repository.hold("1.0.0", contract("1.0.0"))
    assert world.get(shop(world)).unavailable == "its contract could not be read"
    assert all(thread.is_alive() for thread in world.threads)


def test_no_more_than_two_at_a_time_ask_one_registry(world: World) -> None:
    world.repository.gate.clear()
    for number in range(6):
        world.loader.load(Pacto("ns", str(number), oci=f"{world.repository.ref}:{number}.0.0"))
    until(lambda: len(world.repository.server.seen) == 2)
    time.sleep(0.1)
    assert len(world.repository.server.seen) == 2
