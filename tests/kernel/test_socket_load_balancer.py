# SPDX-License-Identifier: MIT
"""A socket load balancer replaces a service's address by a backend's: what the agent sees, what is judged.

Two pods on one wire. The service addresses exist nowhere: a connection to one that is not replaced
ends with nobody answering.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from kubectl_pacto.conformance.check import Checked
from kubectl_pacto.model.node import FailureReason
from tests.support import balancer, builders
from tests.support.agents import Watched, bpf_objects, exists, options, watching
from tests.support.balancer import Place, balancing
from tests.support.hosts import Host, Pod, until
from tests.support.require import require, require_programs
from tests.support.tables import describe

# as tests/support/builders.py numbers providers: db is the first, audit the second
DB, AUDIT = ("10.96.0.1", 5432), ("10.96.0.2", 5432)
DB_POD, AUDIT_POD = ("10.2.0.1", 6432), ("10.2.0.2", 6432)
STALENESS = 5.0


@pytest.fixture
def client(host: Host) -> Pod:
    """The workload's pod."""
    return host.pod()


@pytest.fixture
def backend(host: Host, client: Pod) -> Pod:
    """Serves at both pod addresses, at the far end of the client's wire."""
    require_programs("kernel", "ip")
    require("kernel", balancer.missing())
    made = host.pod()
    client.run(f"ip('link add eth0 type veth peer name eth0 netns {made.pid}')")
    client.run("ip('addr add 10.1.0.1/8 dev eth0'); ip('link set eth0 up')")
    made.run("[ip(f'addr add {one}/8 dev eth0') for one in ('10.2.0.1', '10.2.0.2')]")
    made.run("ip('link set eth0 up')")
    made.run("listen('0.0.0.0', 6432)")
    return made


@pytest.fixture
def agent(client: Pod, backend: Pod, mapper: str) -> Iterator[Watched]:
    """An agent that knows the client."""
    with watching(options(mapper=mapper, resync=0.5)) as watched:
        assert watched.known(client.uid).complete
        yield watched


def peers(agent: Watched, pod: Pod) -> set[tuple[str, int]]:
    """Whom a pod called, by the agent's view."""
    return {(peer.address, peer.port) for peer in agent.known(pod.uid).peers}


def balanced(pod: Pod, services: dict[Place, Place]) -> AbstractContextManager[None]:
    """The pod's cgroup is under the balancer."""
    assert pod.group is not None
    return balancing(pod.group, services)


def judge(agent: Watched, client: Pod, **row: Any) -> Checked:
    """The check of the Pacto that the client belongs to, now, on what the agent published."""
    pod = {"uid": client.uid, "node": "test-node", "ips": ["10.1.0.1"]}
    whole = {
        "contract": {"dependencies": ["db"]},
        "providers": {"db": {"target": DB_POD[1]}},
        "pods": {"a": pod},
        "nodes": {"test-node": {"object": False}},
        "objects": [agent.sink.object, agent.sink.lease],
        "options": {"staleness": STALENESS},
        **row,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builders, "AT", time.time())
        return builders.run(whole)


def test_the_peer_is_the_backend_and_the_dependency_is_reachable_by_it(agent: Watched, client: Pod) -> None:
    with balanced(client, {DB: DB_POD}):
        assert client.run(f"connect_many(*{DB}, 7)") == 7
        until(lambda: agent.counted(client.uid, *DB_POD).succeeded == 7, "seven connections to the backend")
    assert peers(agent, client) == {DB_POD}
    expect = {
        "dependency/db": "reachable by k8s-observer+ebpf",
        "findings": [],
        "undeclared": [],
        "kernel": {"complete": 1},
    }
    assert describe(judge(agent, client), expect) == expect


def test_a_connection_found_at_a_resync_is_to_the_backend(client: Pod, backend: Pod, mapper: str) -> None:
    with balanced(client, {DB: DB_POD}):
        client.run(f"open_connection(*{DB})")
    with watching(options(mapper=mapper)) as agent:
        assert agent.peer(client.uid, *DB_POD).open == 1
        assert peers(agent, client) == {DB_POD}
        expect = {"dependency/db": "reachable", "undeclared": []}
        assert describe(judge(agent, client), expect) == expect


def test_a_backend_that_refuses_makes_the_dependency_unreachable(
    agent: Watched, client: Pod, backend: Pod
) -> None:
    since = agent.view.collection.connections_since
    assert since is not None
    backend.run("close_all()")
    # before that the agent cannot know of a connection that succeeded
    until(lambda: time.time() > since + STALENESS + 0.5, "connections seen for as long as is recent")
    with balanced(client, {DB: DB_POD}):
        client.run(f"connect_many(*{DB}, 3)")
    until(lambda: agent.counted(client.uid, *DB_POD).failed == 3, "three refusals by the backend")
    checked = judge(agent, client, windows={"dependency/db": 300})
    assert agent.peer(client.uid, *DB_POD).failure_reason is FailureReason.REFUSED
    assert peers(agent, client) == {DB_POD}
    expect = {
        "dependency/db": "unreachable by k8s-observer+ebpf",
        "findings": ["DEPENDENCY_UNREACHABLE"],
        "status": "NonCompliant",
    }
    assert describe(checked, expect) == expect


def test_a_pod_behind_a_declared_and_an_undeclared_service_is_no_undeclared_dependency(
    agent: Watched, client: Pod
) -> None:
    # the client means audit, and nothing can tell: the pod behind both is all that the kernel sees
    behind_both = {"target": DB_POD[1], "endpoints": [{"addresses": [DB_POD[0]], "pod": "db-0"}]}
    shared = {"db": {"target": DB_POD[1]}, "audit": behind_both}
    with balanced(client, {DB: DB_POD, AUDIT: DB_POD}):
        assert client.run(f"connect_many(*{AUDIT}, 5)") == 5
        until(lambda: agent.counted(client.uid, *DB_POD).succeeded == 5, "five connections to the shared pod")
    expect = {"undeclared": [], "findings": [], "dependency/db": "reachable by k8s-observer+ebpf"}
    assert describe(judge(agent, client, providers=shared), expect) == expect


def test_a_pod_of_an_undeclared_service_alone_is_an_undeclared_dependency(
    agent: Watched, client: Pod
) -> None:
    both = {"db": {"target": DB_POD[1]}, "audit": {"target": AUDIT_POD[1]}}
    with balanced(client, {DB: DB_POD, AUDIT: AUDIT_POD}):
        assert client.run(f"connect_many(*{AUDIT}, 5)") == 5
        until(lambda: agent.counted(client.uid, *AUDIT_POD).succeeded == 5, "five connections to audit's pod")
    expect = {"undeclared": ["audit"], "findings": ["DEPENDENCY_UNDECLARED"]}
    assert describe(judge(agent, client, providers=both), expect) == expect


def test_another_cgroup_is_not_balanced(agent: Watched, host: Host, client: Pod) -> None:
    beside = host.process(host.pod_group(client.uid), client.pid)
    with balanced(client, {DB: DB_POD}):
        beside.run(f"close(start_connecting(*{DB}))")
    until(lambda: DB in peers(agent, client), "an attempt at the service's own address")
    assert DB_POD not in peers(agent, client)


def test_the_balancer_is_gone_after_a_failure(client: Pod, backend: Pod) -> None:
    before = bpf_objects(os.getpid())
    made: set[tuple[str, int]] = set()

    def fail_with_it_attached() -> None:
        with balanced(client, {DB: DB_POD}):
            made.update(bpf_objects(os.getpid()) - before)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_with_it_attached()
    assert {what for what, _ in made} >= {"prog_id", "link_id"}
    until(lambda: not any(exists(*one) for one in made), "none of the balancer's objects is left")
    assert bpf_objects(os.getpid()) == before
