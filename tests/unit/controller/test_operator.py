# SPDX-License-Identifier: MIT
"""What the probes say, what has a Pacto checked, and that nothing of a node does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kubectl_pacto.controller import operator as module
from kubectl_pacto.controller.connection import Connection
from kubectl_pacto.controller.operator import Operator
from kubectl_pacto.controller.options import settings
from kubectl_pacto.kube.polled import PolledObject
from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.kube.transport import Server
from kubectl_pacto.model.decode_net import decode_lease
from kubectl_pacto.model.fields import Fields
from tests.support import builders
from tests.unit.controller.fixtures import KEY, KINDS
from tests.unit.controller.registry_world import revision_like

POD = {"POD_NAMESPACE": "pacto-operator-system"}
KERNEL = ["--kernel-evidence-namespace", "agents"]
Raw = dict[str, Any]


def make(*arguments: str) -> Operator:
    """An operator whose API server nobody ever reaches."""
    return Operator(settings([*KERNEL, *arguments], POD), Connection(Server("127.0.0.1", 1), lambda: None))


@pytest.fixture
def operator() -> Iterator[Operator]:
    made = make()
    yield made
    made.close()


def _wait(event: threading.Event) -> None:
    event.wait(60)


def put(operator: Operator, raw: Raw, *, generation: int = 1, revision: str = "") -> None:
    """An object as its watch brings it."""
    metadata = raw["metadata"]
    if raw["kind"] == "Pacto":
        metadata.update(generation=generation, uid="u1", resourceVersion="1")
        raw.setdefault("status", {})["currentRevision"] = revision
    operator.live.tables[raw["kind"]].put(
        (metadata.get("namespace", ""), metadata["name"]), KINDS[raw["kind"]].decode(raw)
    )


def due(operator: Operator) -> set[Key]:
    """The Pactos that wait for a check; they are taken, and done."""
    found = set()
    while (taken := operator.queue.take(0.3)) is not None:
        found.add(taken.key)
        operator.queue.done(taken.key)
    return found


def test_it_is_ready_once_every_kind_was_listed_and_names_those_that_were_not(operator: Operator) -> None:
    assert operator.is_ready().startswith("not listed yet: Pacto, Service, ")
    last = list(operator.reflectors)[-1]
    for name, reflector in operator.reflectors.items():
        if name != last:
            reflector._listed.set()
    assert operator.is_ready() == f"not listed yet: {last}"
    operator.reflectors[last]._listed.set()
    assert operator.is_ready() == ""


def test_what_is_read_of_the_kernel_must_be_listed_too(operator: Operator) -> None:
    assert "Lease" in operator.reflectors
    without = Operator(settings([], POD), Connection(Server("127.0.0.1", 1), lambda: None))
    assert "Lease" not in without.reflectors
    without.close()


def test_it_is_well_while_its_threads_live(operator: Operator) -> None:
    assert operator.is_ill() == ""
    stop = threading.Event()
    operator._start("worker 0", partial(_wait, stop))
    assert operator.is_ill() == ""
    stop.set()
    for thread in operator._threads:
        thread.join(10)
    assert operator.is_ill() == "ended: worker 0"


def test_a_thread_that_is_about_to_begin_has_not_ended(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    start = threading.Thread.start

    def probed_first(thread: threading.Thread) -> None:
        said.append(operator.is_ill())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", probed_first)
    operator._start("worker 0", partial(_wait, operator._stop))
    assert said == [""]


def test_a_start_that_breaks_off_is_an_illness(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would lead, and check nothing for ever."""
    start = operator._start

    def start_no_worker(name: str, run: Callable[[], None]) -> None:
        if name.startswith("worker"):
            raise RuntimeError("can't start new thread")
        start(name, run)

    for reflector in operator.reflectors.values():
        reflector._listed.set()
    monkeypatch.setattr(operator, "_start", start_no_worker)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    operator.lead()
    leader = next(thread for thread in operator._threads if thread.name == "leader")
    leader.join(10)
    assert operator.is_ill() == "ended: leader"


def test_a_start_that_is_done_is_none(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    for reflector in operator.reflectors.values():
        reflector._listed.set()
    monkeypatch.setattr(operator, "_work", partial(_wait, operator._stop))
    operator.lead()
    leader = next(thread for thread in operator._threads if thread.name == "leader")
    leader.join(10)
    assert not leader.is_alive()
    assert operator.is_ill() == ""


def test_a_check_that_hangs_is_an_illness(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.queue.add(KEY)
    operator.queue.take(1)
    assert operator.is_ill() == ""
    monkeypatch.setattr(module, "STUCK_SECONDS", -1.0)
    assert operator.is_ill().startswith("a check has been running for ")


def test_nothing_of_a_node_and_no_pod_or_slice_has_anything_checked(operator: Operator) -> None:
    rows: Raw = {"pods": {"a": {}}, "providers": {"db": {}}}
    objects = builders.objects(rows)
    for raw in objects:
        if raw["kind"] == "Pacto":
            put(operator, raw)
    assert due(operator) == {KEY, ("data", "db")}
    for raw in objects:
        if raw["kind"] in ("Pod", "EndpointSlice", "Namespace", "Ingress"):
            put(operator, raw)
        if raw["kind"] == "Lease":
            operator.heartbeats.put(("agents", raw["metadata"]["name"]), decode_lease(Fields(raw)))
    assert {raw["kind"] for raw in objects} >= {"Pod", "EndpointSlice", "Lease", "NodeRuntimeObservation"}
    assert due(operator) == set()


def test_a_service_of_its_name_has_it_checked(operator: Operator) -> None:
    objects = builders.objects({})
    for kind in ("Pacto", "Service"):
        for raw in objects:
            if raw["kind"] == kind:
                put(operator, raw)
        assert due(operator) == {KEY}


@pytest.mark.parametrize(
    ("current", "owner", "is_checked"), [("r1", "u1", True), ("r2", "u1", False), ("r1", "another", False)]
)
def test_a_deleted_revision_has_its_pacto_checked_where_it_is_the_current_one(
    operator: Operator, current: str, owner: str, is_checked: bool
) -> None:
    (pacto,) = [raw for raw in builders.objects({}) if raw["kind"] == "Pacto"]
    put(operator, pacto, revision=current)
    assert due(operator) == {KEY}
    revised = operator._registries.revisions.table
    raw = revision_like("r1", owner=owner)
    raw["metadata"]["namespace"] = "shop"
    revised.put(("shop", "r1"), revised.decode(raw))
    assert due(operator) == set()
    revised.drop(("shop", "r1"))
    assert due(operator) == ({KEY} if is_checked else set())


def test_a_contract_that_arrives_has_its_pacto_checked(operator: Operator) -> None:
    operator._registries.downloads._changed(KEY)
    assert due(operator) == {KEY}


def test_in_one_namespace_nothing_outside_of_it_is_listed() -> None:
    watched = make("--watch-namespace", "shop")
    paths = {name: one.path for name, one in watched.reflectors.items() if name != "Lease"}
    assert all("/namespaces/shop" in path for path in paths.values()), paths
    assert paths["PactoRevision"] == "/apis/pacto.trianalab.io/v1alpha1/namespaces/shop/pactorevisions"
    assert isinstance(watched.reflectors["Namespace"], PolledObject)
    assert paths["Namespace"] == "/api/v1/namespaces/shop"
    watched.close()


def test_an_end_does_not_wait_for_a_registry(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    forever = threading.Event()
    monkeypatch.setattr(module, "CLOSE_SECONDS", 5.0)
    operator._start("registry 0", partial(_wait, forever))
    operator.close()
    assert any(thread.is_alive() for thread in operator._threads)
    forever.set()


def test_who_rests_takes_no_check_and_goes_on_where_it_was(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKE_SECONDS", 0.02)
    taken = threading.Event()
    monkeypatch.setattr(operator, "_reconcile", lambda *_: taken.set())
    operator._start("worker", operator._work)
    operator.queue.add(KEY)
    assert not taken.wait(0.3)  # nobody leads yet
    operator._begun = True  # nothing else is to be started here
    operator.lead()
    assert taken.wait(10)
    operator.queue.done(KEY)
    operator.rest()
    taken.clear()
    operator.queue.add(KEY)
    assert not taken.wait(0.3)
    operator.lead()
    assert taken.wait(10)


def test_who_rests_while_a_worker_waits_begins_no_check_and_forgets_none(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, taken = operator.queue.take, threading.Event()
    reconciled = threading.Event()

    def take_and_rest(timeout: float) -> Any:
        found = take(timeout)
        if found is not None and not taken.is_set():
            operator.rest()
            taken.set()
        return found

    monkeypatch.setattr(module, "TAKE_SECONDS", 0.02)
    monkeypatch.setattr(operator.queue, "take", take_and_rest)
    monkeypatch.setattr(operator, "_reconcile", lambda *_: reconciled.set())
    operator._begun = True  # nothing else is to be started here
    operator.lead()
    operator.queue.add(KEY)
    operator._start("worker", operator._work)
    assert taken.wait(10)
    assert not reconciled.wait(0.3)
    assert operator.queue.longest_running() == 0
    operator.lead()
    assert reconciled.wait(10)
