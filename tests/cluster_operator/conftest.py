# SPDX-License-Identifier: MIT
"""A control plane with the CRDs, two nodes without machines, and operators in this process."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kubectl_pacto.controller.generate import crds
from kubectl_pacto.controller.options import Settings, settings
from kubectl_pacto.controller.run import run
from tests.cluster.api import Api, Object
from tests.cluster.fixtures import await_kinds, wait_until
from tests.cluster.live import Live
from tests.cluster_operator.machines import Machines

AGENTS = "agents-by-hand"
OPERATORS = "pacto-operator-system"
WINDOW = "3s"


@pytest.fixture(scope="session")
def api(api_server: Live) -> Api:
    """The API with our kinds served."""
    for crd in crds():
        if not _exists(api_server.api, crd["metadata"]["name"]):
            api_server.api.create(crd)
    for name in (AGENTS, OPERATORS):
        assert wait_until(partial(_is_there, api_server.api, name), 120), f"namespace {name} does not go"
    await_kinds(api_server, crds())
    return api_server.api


def _is_there(api: Api, name: str) -> bool:
    """Whether a namespace is there, made if need be: one of other tests may still be on its way out."""
    made: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    found = api.get("v1", "Namespace", name) or api.create(made)
    return "deletionTimestamp" not in found["metadata"]


def _exists(api: Api, name: str) -> bool:
    return any(one["metadata"]["name"] == name for one in _crds(api))


def _crds(api: Api) -> list[Object]:
    found = json.loads(api.raw("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"))
    items: list[Object] = found["items"]
    return items


@pytest.fixture(scope="session")
def machines(api: Api) -> Iterator[Machines]:
    """Two nodes, whose agents report."""
    made = Machines(api, AGENTS)
    made.start("hand-a", "hand-b")
    yield made
    made.stop()


class Operators:
    """Operators in threads of this process."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig
        self.changes: dict[str, Any] = {"node_object_age": 0.5}
        self._running: list[tuple[threading.Event, threading.Thread]] = []

    def settings(self, *more: str, identity: str = "test", namespace: str = OPERATORS) -> Settings:
        """The settings of an operator that reads the agents written by hand."""
        told = settings(
            [
                "--kubeconfig", self.kubeconfig, "--kernel-evidence-namespace", AGENTS,
                "--stabilization-window", WINDOW, "--metrics-bind-address=0",
                "--health-probe-bind-address=0", *more,
            ],
            {"POD_NAMESPACE": namespace, "POD_NAME": identity},
        )  # fmt: skip
        return replace(told, **self.changes)

    def start(self, *more: str, **given: Any) -> threading.Event:
        """Start one; set the event to end it."""
        stop = threading.Event()
        told = self.settings(*more, **given)
        thread = threading.Thread(target=run, args=(told, stop), daemon=True)
        thread.start()
        self._running.append((stop, thread))
        return stop

    def stop(self) -> None:
        """End all, and see that they end."""
        for stop, _ in self._running:
            stop.set()
        for _, thread in self._running:
            thread.join(60)
            assert not thread.is_alive()
        self._running.clear()


@pytest.fixture
def operators(api_server: Live, api: Api) -> Iterator[Operators]:
    """Operators of one test."""
    made = Operators(str(api_server.kubeconfig))
    yield made
    made.stop()


@pytest.fixture
def shop() -> str:
    """A name that no other test's pods have."""
    return f"shop-{secrets.token_hex(3)}"


Start = Callable[..., threading.Event]
