# SPDX-License-Identifier: MIT
"""A fake API and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kubectl_pacto.kube.client import Client, Tokens, Waiting
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.transport import HttpTransport
from tests.support.fake_api import FakeApi, serve

MakeClient = Callable[..., Client]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A fresh API on loopback."""
    fake = FakeApi()
    with serve(fake):
        yield fake


@pytest.fixture
def slept() -> list[float]:
    """The pauses that clients of this test made."""
    return []


@pytest.fixture
def make_client(api: FakeApi, slept: list[float]) -> Iterator[MakeClient]:
    """Clients that record their pauses instead of sleeping, closed at the end."""
    made: list[Client] = []

    def make(tokens: Tokens | None = None, timeout: float = 2.0, attempts: int = 4) -> Client:
        waiting = Waiting(sleep=slept.append, chance=lambda: 1.0)
        client = Client(
            HttpTransport(api.server, timeout), tokens, retries=RetryPolicy(attempts), waiting=waiting
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
