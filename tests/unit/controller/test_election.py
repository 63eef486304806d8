# SPDX-License-Identifier: MIT
"""Who leads, on real HTTP: never two, and nobody waits for one that went properly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kubectl_pacto.controller.election import LEASE_NAME, Election, Terms
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.paths import leases
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.transport import HttpTransport
from tests.support.fake_api import FakeApi, Fault, serve

PATH = leases("ns", LEASE_NAME)


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    with serve(fake):
        yield fake


Candidate = Callable[..., Election]


@pytest.fixture
def candidate(api: FakeApi) -> Iterator[Candidate]:
    clients: list[Client] = []

    def make(identity: str, clock: Clock | None = None, terms: Terms | None = None) -> Election:
        clients.append(Client(HttpTransport(api.server, 2.0), retries=RetryPolicy(attempts=1)))
        return Election(clients[-1], "ns", identity, terms=terms, clock=clock or Clock())

    yield make
    for client in clients:
        client.close()


def test_the_first_takes_it_and_renews_it(candidate: Candidate, api: FakeApi) -> None:
    one = candidate("one")
    assert one._attempt()
    first = api.objects[PATH]["spec"]
    assert (first["holderIdentity"], first["leaseDurationSeconds"]) == ("one", 15)
    assert one._attempt()
    assert api.objects[PATH]["spec"]["acquireTime"] == first["acquireTime"]


def test_another_waits_until_it_has_not_moved_for_its_duration(candidate: Candidate, api: FakeApi) -> None:
    clock = Clock()
    one, two = candidate("one"), candidate("two", clock)
    assert one._attempt()
    assert not two._attempt()
    clock.now = 14.9
    assert not two._attempt()
    assert one._attempt()
    clock.now = 15.0
    assert not two._attempt()
    clock.now = 30.0
    assert two._attempt()
    assert api.objects[PATH]["spec"]["leaseTransitions"] == 1
    assert not one._attempt()


def test_the_time_in_a_lease_means_nothing(candidate: Candidate, api: FakeApi) -> None:
    api.put(
        PATH,
        {
            "metadata": {"name": LEASE_NAME},
            "spec": {"holderIdentity": "x", "renewTime": "1990-01-01T00:00:00Z", "leaseDurationSeconds": 15},
        },
    )
    assert not candidate("two")._attempt()


def test_one_that_was_given_back_is_free_at_once(candidate: Candidate, api: FakeApi) -> None:
    one, two = candidate("one"), candidate("two")
    one._attempt()
    one.release()
    assert api.objects[PATH]["spec"]["holderIdentity"] == ""
    assert two._attempt()


def test_only_a_holder_gives_back(candidate: Candidate, api: FakeApi) -> None:
    candidate("one")._attempt()
    two = candidate("two")
    two._attempt()
    two.release()
    assert api.objects[PATH]["spec"]["holderIdentity"] == "one"


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_refusal_is_no_lead(candidate: Candidate, api: FakeApi, status: int) -> None:
    api.put(PATH, {"metadata": {"name": LEASE_NAME}, "spec": {}})
    api.faults.extend([Fault(), Fault(status)])
    assert not candidate("one")._attempt()


def _run(one: Election, stop: threading.Event, told: list[str]) -> threading.Thread:
    def run() -> None:
        told.append(str(one.run(stop, lambda: told.append("lead"), lambda: told.append("rest"))))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_who_cannot_renew_rests_and_leads_on_when_nobody_else_did(candidate: Candidate, api: FakeApi) -> None:
    one = candidate("one", time.monotonic, Terms(lease=1.0, renew=0.3, retry=0.05))
    stop, told = threading.Event(), list[str]()
    thread = _run(one, stop, told)
    _until(lambda: told == ["lead"])
    api.faults.extend([Fault(503)] * 1000)
    _until(lambda: told == ["lead", "rest"])
    api.faults.clear()
    _until(lambda: told == ["lead", "rest", "lead"])
    stop.set()
    thread.join()
    assert told[-1] == "True"


def test_who_rests_does_not_call_itself_leader(candidate: Candidate, api: FakeApi) -> None:
    one = candidate("one", time.monotonic, Terms(lease=1.0, renew=0.3, retry=0.05))
    stop, seen = threading.Event(), list[bool]()

    def rest() -> None:
        seen.append(one.leads)
        stop.set()

    assert one.run(stop, lambda: api.faults.extend([Fault(503)] * 1000), rest) is True
    assert seen == [False]


def test_who_finds_another_in_the_lead_ends(candidate: Candidate, api: FakeApi) -> None:
    one, told = candidate("one", time.monotonic, Terms(lease=1.0, renew=60.0, retry=0.05)), list[str]()
    thread = _run(one, threading.Event(), told)
    _until(lambda: told == ["lead"])
    taken = {**api.objects[PATH]["spec"], "holderIdentity": "two"}
    api.put(PATH, {"metadata": {"name": LEASE_NAME}, "spec": taken})
    thread.join(20)
    assert told == ["lead", "rest", "False"]
    assert not one.leads


def test_stop_ends_it_well(candidate: Candidate) -> None:
    stop = threading.Event()
    one = candidate("one", terms=Terms(retry=0.02))
    assert one.run(stop, stop.set, lambda: None) is True
    one.release()


def test_stop_while_waiting(candidate: Candidate) -> None:
    candidate("one")._attempt()
    stop = threading.Event()
    stop.set()
    assert candidate("two").run(stop, lambda: None, lambda: None) is True
