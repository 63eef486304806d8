# SPDX-License-Identifier: MIT
"""Every scenario of the tables, and what of the specification is about the release itself."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any, Final

import pytest

from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.instant import parse_instant
from kubectl_pacto.model.node_codec import KIND
from tests.acceptance.conftest import Run
from tests.acceptance.release import AGENTS, INTERVAL_SECONDS, LABEL, OPERATORS
from tests.acceptance.table import Scenario, scenarios
from tests.acceptance.watcher import API
from tests.cluster.answers import FORBIDDEN, answer, answer_to_replace
from tests.cluster.api import Api, ApiError, Object
from tests.cluster.fixtures import wait_until
from tests.images import runtime

pytestmark = pytest.mark.cluster
ALL: Final = scenarios()
ONLY: Final = os.environ.get("PACTO_ACCEPTANCE_ONLY", "")
DAEMON_SET: Final = "pacto-node-agent"
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
LEASES: Final = "coordination.k8s.io/v1"
RENEWALS: Final = 6  # one that was there, and one in each of five intervals


def of(phase: str) -> list[Scenario]:
    """The scenarios of a phase."""
    return [one for one in ALL if one.phase == phase and (not ONLY or one.id in ONLY.split(","))]


@pytest.fixture(scope="module")
def without_agents(run: Run) -> Run:
    """The scenarios that need no agent, all over before one is installed."""
    run.start(of("api"))
    run.wait(of("api"))
    return run


@pytest.fixture(scope="module")
def with_agents(without_agents: Run) -> Run:
    """Agents are on, and all scenarios under way."""
    run = without_agents
    run.turned_on = time.monotonic()
    run.world.plugin.run("upgrade", "--node-agent", "--enable-probing", "--timeout", "120s")
    run.start(of("kernel"))
    return run


@pytest.fixture(scope="module")
def turned_off(with_agents: Run) -> Run:
    """All scenarios are over, and agents are off again."""
    run = with_agents
    run.wait(of("kernel"))
    run.turned_off = time.monotonic()
    run.world.plugin.run("upgrade", "--no-node-agent", "--timeout", "120s")
    run.start(of("off"))
    return run


@pytest.mark.parametrize("scenario", of("api"), ids=lambda one: one.id)
def test_the_api_alone(without_agents: Run, scenario: Scenario) -> None:
    without_agents.result(scenario)


def daemon_set(run: Run) -> Object:
    found = run.world.live.api.get("apps/v1", "DaemonSet", DAEMON_SET, AGENTS)
    assert found is not None
    return found


def agents(run: Run) -> list[Object]:
    return run.world.live.pods(AGENTS, f"app.kubernetes.io/name={DAEMON_SET}")


def test_one_agent_runs_on_each_node_that_it_is_told(with_agents: Run) -> None:
    spec = daemon_set(with_agents)["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", LABEL: "managed"}
    (container,) = spec["containers"]
    assert container["image"] == runtime.NAME
    assert [*container["command"], *container["args"]][:4] == ["pacto", "agent", "--sink", "kubernetes"]
    nodes = [pod["spec"]["nodeName"] for pod in agents(with_agents)]
    assert sorted(nodes) == sorted(with_agents.world.live.nodes)
    proves = ["daemon-set", "linux-only"]
    took = time.monotonic() - with_agents.turned_on
    with_agents.add(
        "daemon-set", proves, "the agent is turned on", f"one pod on each of {len(nodes)} nodes", took
    )


def test_an_agent_is_confined(with_agents: Run) -> None:
    live = with_agents.world.live
    spec = daemon_set(with_agents)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert spec["hostPID"] is True
    assert "hostNetwork" not in spec
    assert security["runAsUser"] == 0
    assert security["capabilities"] == {"add": ["BPF", "PERFMON", "SYS_PTRACE"], "drop": ["ALL"]}
    assert not security["privileged"]
    assert not security["allowPrivilegeEscalation"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "cgroup"]
    assert mount["readOnly"] is True
    # what the kernel says of the running process: three capabilities and not one more
    name = agents(with_agents)[0]["metadata"]["name"]
    status = live.in_pod(AGENTS, name, "grep", "CapEff", "/proc/self/status")
    bits = int(status.split()[1], 16)
    assert bits == 1 << 19 | 1 << 38 | 1 << 39, status
    labels = (live.api.get("v1", "Namespace", AGENTS) or {})["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    own = (live.api.get("v1", "Namespace", OPERATORS) or {})["metadata"].get("labels", {})
    assert own.get("pod-security.kubernetes.io/enforce") != "privileged"
    resources = container["resources"]
    assert resources["requests"] == {"cpu": "50m", "memory": "64Mi"}
    assert resources["limits"] == {"cpu": "200m", "memory": "256Mi"}
    with_agents.add(
        "confined", ["confined", "own-namespace", "resources"], "the agent's pod is looked at",
        "three capabilities in the kernel's own words, its namespace alone privileged", 0.0,
    )  # fmt: skip


def test_an_agent_opens_no_port(with_agents: Run) -> None:
    """Its network namespace has no listening socket, of no protocol that the kernel lists."""
    name = agents(with_agents)[0]["metadata"]["name"]
    script = "import os; print(*[open(f'/proc/net/{one}').read() for one in ('tcp', 'tcp6')])"
    table = with_agents.world.live.in_pod(AGENTS, name, "python3", "-c", script)
    states = [line.split()[3] for line in table.splitlines() if line.strip() and ":" in line.split()[0]]
    assert "0A" not in states, table
    with_agents.add("no-port", ["no-port"], "the sockets of an agent's pod are listed", "none listens", 0.0)


def refused(api: Api, method: str, path: str, body: Object | None = None) -> bool:
    return answer(api, method, path, body)[0] == FORBIDDEN


@pytest.fixture
def reporting(with_agents: Run) -> Run:
    """Agents that have published: one is ready as soon as it runs."""
    api = with_agents.world.live.api
    for node in with_agents.world.live.nodes:
        assert wait_until(partial(api.get, LEASES, "Lease", node, AGENTS), 120), f"{node} reports nothing"
    return with_agents


def test_an_agent_may_write_the_objects_of_its_own_node_and_nothing_else(reporting: Run) -> None:
    live = reporting.world.live
    one = agents(reporting)[0]
    api = live.as_token(live.in_pod(AGENTS, one["metadata"]["name"], "cat", TOKEN).strip())
    own, other = one["spec"]["nodeName"], next(n for n in live.nodes if n != one["spec"]["nodeName"])
    for version, kind in ((API_VERSION, KIND), (LEASES, "Lease")):
        assert answer_to_replace(api, live.api, version, kind, AGENTS, other)[0] == FORBIDDEN
        invented = {"apiVersion": version, "kind": kind, "metadata": {"name": "node-z", "namespace": AGENTS}}
        if kind == KIND:
            invented |= {"nodeName": "node-z", "collection": {"state": "Running"}}
        assert refused(api, "POST", live.api.path(version, kind, AGENTS), invented)
        assert not refused(api, "GET", live.api.path(version, kind, AGENTS, own))
        assert refused(api, "DELETE", live.api.path(version, kind, AGENTS, own))
    foreign = [("v1", "Pod", ""), ("v1", "Secret", AGENTS), ("v1", "Node", ""), (API, "Pacto", "")]
    for version, kind, where in [*foreign, (LEASES, "Lease", OPERATORS)]:
        assert refused(api, "GET", live.api.path(version, kind, where)), kind
    cause = "an agent's token writes for another node, and reads elsewhere"
    reporting.add("policy", ["policy", "rights"], cause, "refused", 0.0)


def test_a_heartbeat_moves_and_an_object_is_not_written_more_often(reporting: Run) -> None:
    api, node = reporting.world.live.api, reporting.world.live.nodes[0]
    seen: list[tuple[str, str]] = []
    begun, lease, renewals, versions = time.monotonic(), None, 0, 0
    times: list[float] = []
    while renewals < RENEWALS:
        assert time.monotonic() - begun < 20 * INTERVAL_SECONDS, seen
        lease, view = api.get(LEASES, "Lease", node, AGENTS), api.get(API_VERSION, KIND, node, AGENTS)
        assert lease is not None
        assert view is not None
        seen.append((lease["spec"]["renewTime"], view["metadata"]["resourceVersion"]))
        times, versions = sorted({parse_instant(one) for one, _ in seen}), len({one for _, one in seen})
        renewals = len(times)
        time.sleep(INTERVAL_SECONDS / 8)
    assert lease is not None
    assert lease["spec"]["leaseDurationSeconds"] == 3 * INTERVAL_SECONDS
    # a loaded machine may be late with any of them; it is never more often than once an interval
    assert times[-1] - times[0] >= (renewals - 1.5) * INTERVAL_SECONDS, seen
    assert versions <= renewals + 1, seen
    told = f"{renewals} heartbeats seen, each good for three intervals; {versions} versions of the object"
    proves = ["heartbeat", "publish-interval", "bound"]
    reporting.add("heartbeat", proves, f"five intervals of {INTERVAL_SECONDS:g} s pass", told, 0.0)


@pytest.mark.parametrize("scenario", of("kernel"), ids=lambda one: one.id)
def test_with_the_kernel(with_agents: Run, scenario: Scenario) -> None:
    with_agents.result(scenario)


def test_turning_it_off_removes_all_of_it(turned_off: Run) -> None:
    live = turned_off.world.live
    deadline = time.monotonic() + 180
    while live.api.get("v1", "Namespace", AGENTS) is not None:
        assert time.monotonic() < deadline, live.describe(AGENTS)
        time.sleep(0.5)
    took = time.monotonic() - turned_off.turned_off
    left: list[Any] = live.api.items(API_VERSION, KIND)
    assert left == []
    policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pacto-node-agent-own-node"
    with pytest.raises(ApiError, match="not found"):
        live.api.raw("GET", policy)
    turned_off.add(
        "turned-off",
        ["turned-off"],
        "the agent is turned off",
        "its namespace, all in it and the policy are gone",
        took,
    )


@pytest.mark.parametrize("scenario", of("off"), ids=lambda one: one.id)
def test_and_the_api_alone_again(turned_off: Run, scenario: Scenario) -> None:
    turned_off.result(scenario)
