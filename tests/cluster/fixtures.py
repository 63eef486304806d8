# SPDX-License-Identifier: MIT
"""The fixtures of every test that needs a cluster; tests/conftest.py names this module as a plugin.

A run makes one cluster and takes it down. With PACTO_CLUSTER set it uses that one, which `make
e2e-up` left, and leaves it there: seconds instead of a minute while a test is written.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

import pytest

from tests.cluster import cluster as local
from tests.cluster import live
from tests.cluster.api import ApiError, Object
from tests.cluster.layout import DEFAULT_VERSION, full_version
from tests.cluster.live import Live
from tests.images import runtime, workloads
from tests.support.require import require

POLL_SECONDS: Final = 0.1
T = TypeVar("T")


class WaitFor(Protocol):
    """Wait until the condition returns something true, and return that."""

    def __call__(self, condition: Callable[[], T], timeout: float = 30, what: str = "") -> T:
        """Fail with the objects, events and logs of the test's namespace when the time is over."""


@pytest.fixture(scope="session")
def api_server() -> Iterator[Live]:
    """A control plane without a node (nodes join it when a test asks for `cluster`)."""
    require("cluster", live.missing())
    version = full_version(os.environ.get("PACTO_KUBERNETES", DEFAULT_VERSION))
    kept = os.environ.get("PACTO_CLUSTER")
    if kept:
        provider = live.provider(kept)
        provider.up(version)
        yield Live(provider)
        return
    local.sweep()  # what a killed run left
    provider = live.provider(f"test-{os.getpid()}", owner=os.getpid())
    try:
        provider.up(version)
        yield Live(provider)
    finally:
        provider.down()


@pytest.fixture(scope="session")
def cluster(api_server: Live) -> Live:
    """Two nodes with the runtime image and the small workloads."""
    api_server.provider.add_nodes(live.NODES)
    for archive in (workloads.small_archive(), runtime.archive()):
        api_server.load(archive)
    return api_server


@pytest.fixture
def namespace(api_server: Live) -> Iterator[str]:
    """A namespace of the test's own, with all that Kubernetes puts into one, which takes a moment."""
    name = f"test-{secrets.token_hex(4)}"
    api_server.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for kind, own in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
        assert wait_until(partial(api_server.api.get, "v1", kind, own, name), 60), f"no {kind} in {name}"
    yield name
    api_server.api.delete("v1", "Namespace", name)


def await_kinds(made: Live, crds: Sequence[Object]) -> None:
    """Return once kinds that were just defined are served, and told of: either takes a moment."""
    names = [f"crd/{one['metadata']['name']}" for one in crds]
    made.kubectl("wait", "--for=condition=Established", "--timeout=90s", *names)
    for one in crds:
        spec = one["spec"]
        version, kind = f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]
        assert wait_until(partial(made.api.resource, version, kind), 60), f"{kind} is not served"


def wait_until(condition: Callable[[], T], timeout: float) -> T | None:
    """Poll; what the API refuses meanwhile counts as not yet."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            if found := condition():
                return found
        except (OSError, ApiError) as error:
            if time.monotonic() > deadline:
                raise
            del error
        if time.monotonic() > deadline:
            return None
        time.sleep(POLL_SECONDS)


@pytest.fixture
def wait_for(request: pytest.FixtureRequest) -> WaitFor:
    """Wait for a condition; a failure shows what the cluster was doing."""

    def wait(condition: Callable[[], T], timeout: float = 30, what: str = "") -> T:
        found = wait_until(condition, timeout)
        if found:
            return found
        text = [f"not within {timeout:g} s: {what or condition}"]
        if "namespace" in request.fixturenames:
            made: Live = request.getfixturevalue("api_server")
            text.append(made.describe(request.getfixturevalue("namespace")))
        pytest.fail("\n".join(text), pytrace=False)

    return wait
