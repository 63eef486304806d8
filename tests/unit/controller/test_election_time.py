# SPDX-License-Identifier: MIT
"""A leader whose API server is slow rests before anybody else can begin, by one clock for all requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kubectl_pacto.controller.connection import HASTY_SECONDS
from kubectl_pacto.controller.election import LEASE_NAME, Election, Terms
from kubectl_pacto.kube.errors import ApiNotFound, ApiUnreachable
from kubectl_pacto.kube.paths import leases

PATH = leases("ns", LEASE_NAME)
TERMS = Terms()


class World:
    """An API, a clock that moves while it answers and while somebody waits, and what was told when.

    The first attempt takes the Lease, its write answered after `first` seconds; each request after it takes
    the next of `seconds`, and all that follow the last one. Those that take any time are never answered.
    """

    def __init__(self, seconds: Iterable[float], first: float = 0.0) -> None:
        self.now = 0.0
        self.first = first
        self.seconds = list(seconds)
        self.lease: dict[str, Any] = {}
        self.written_at = 0.0
        self.told: list[tuple[str, float]] = []

    def clock(self) -> float:
        return self.now

    def is_set(self) -> bool:
        return any(word == "rest" for word, _ in self.told)

    def wait(self, seconds: float) -> None:
        assert self.now < 60, "it never rests"
        self.now += seconds

    def tell(self, word: str) -> Callable[[], None]:
        return lambda: self.told.append((word, self.now))

    def get(self, path: str) -> dict[str, Any]:
        if not self.lease:
            raise ApiNotFound(method="GET", path=path, problem="none")
        self._take("GET")
        return self.lease

    def post(self, _path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.lease, self.written_at = {**body, "metadata": {"resourceVersion": "1"}}, self.now
        self.now += self.first
        return self.lease

    def put(self, _path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._take("PUT")
        self.lease, self.written_at = body, self.now
        return self.lease

    def _take(self, method: str) -> None:
        took = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        self.now += abs(took)
        if took > 0:
            raise ApiUnreachable(method=method, path=PATH, problem=f"no answer within {took} s")


def test_a_request_that_hangs_is_given_up_before_another_may_lead() -> None:
    assert TERMS.renew + HASTY_SECONDS < TERMS.lease


@pytest.mark.parametrize(
    ("seconds", "first"),
    [
        ([4.0], 0.0),
        # an attempt that fails just before it would be late, and one that hangs after it
        ([0.01, 0.01, 0.01, 1.85, 4.0], 0.0),
        # whoever waits counts from the write, not from its answer
        ([0.01, 0.01, 0.01, 0.01, 4.0], 3.9),
        # a read that is answered late (a minus sign), and the write after it hangs
        ([0.01, 0.01, 0.01, 1.8, -3.9, 4.0], 0.0),
        ([0.01, 0.01, 0.01, 0.01, -3.9, 4.0], 0.0),
    ],
)
def test_it_rests_before_its_lease_is_over(seconds: list[float], first: float) -> None:
    world = World(seconds, first)
    one = Election(world, "ns", "one", terms=TERMS, clock=world.clock)  # type: ignore[arg-type]
    assert one.run(world, world.tell("lead"), world.tell("rest"))  # type: ignore[arg-type]
    assert [word for word, _ in world.told] == ["lead", "rest"]
    assert world.told[1][1] < world.written_at + TERMS.lease
    assert not one.leads
