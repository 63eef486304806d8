# SPDX-License-Identifier: MIT
"""From a Pacto to its status on a real API server, the kernel's words written by hand."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml

from tests.cluster import manifests
from tests.cluster.api import Api, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster_operator.conftest import Operators
from tests.cluster_operator.machines import Machines, stamp

pytestmark = pytest.mark.cluster
API = "pacto.trianalab.io/v1alpha1"


def pacto(namespace: str, name: str, *, dependencies: list[str] | None = None, **spec: Any) -> Object:
    """A Pacto of the Service and Deployment of its name."""
    contract: Object = {
        "pactoVersion": "2.0",
        "service": {"name": name, "version": "1.2.3"},
        "interfaces": [{"name": "api", "type": "openapi", "ref": "openapi.yaml"}],
    }
    if dependencies:
        contract["dependencies"] = [
            {"name": one, "ref": f"oci://registry.example/{one}", "compatibility": "^1.0.0", "required": True}
            for one in dependencies
        ]
    return {
        "apiVersion": API,
        "kind": "Pacto",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "contractRef": {"inline": yaml.safe_dump(contract)},
            "target": {
                "serviceName": name,
                "interfaceBindings": [{"interface": "api", "servicePort": 80}],
            },
            "checkIntervalSeconds": 30,
            **spec,
        },
    }


class Scene:
    """One namespace of a test."""

    def __init__(self, api: Api, namespace: str, wait_for: WaitFor) -> None:
        self.api = api
        self.namespace = namespace
        self.wait_for = wait_for

    def deploy(self, name: str, *, replicas: int = 1, **given: Any) -> None:
        """A Deployment, its Service and its Pacto."""
        containers = [{"name": "main", "image": "none.example/none"}]
        self.api.create(manifests.deployment(self.namespace, name, containers, replicas))
        self.api.create(manifests.service(self.namespace, name))
        self.api.create(pacto(self.namespace, name, **given))

    def status(self, name: str) -> Object:
        """The status of a Pacto; empty before its first check."""
        found = self.api.get(API, "Pacto", name, self.namespace)
        status: Object = (found or {}).get("status") or {}
        return status

    def codes(self, name: str) -> list[str]:
        """The codes of its findings."""
        return [item["code"] for item in self.status(name).get("findings", ())]

    def until(self, name: str, contract_status: str, *codes: str, timeout: float = 120) -> Object:
        """Wait for a verdict, and for exactly these findings: the status that says so."""

        def holds() -> Object | None:
            status = self.status(name)
            found = [item["code"] for item in status.get("findings", ())]
            return status if (status.get("contractStatus"), found) == (contract_status, [*codes]) else None

        said = f"{name} to be {contract_status} {codes}, at first: {self.status(name)}"
        return self.wait_for(holds, timeout, said) or {}

    def until_told(self, reason: str) -> None:
        """Wait for an event: it follows the status that it tells of."""

        def is_told() -> bool:
            events = self.api.items("v1", "Event", self.namespace)
            return reason in [one["reason"] for one in events]

        self.wait_for(is_told, 60, f"an event {reason}")

    def cluster_ip(self, name: str) -> str:
        """The cluster IP of a Service."""
        found = self.api.get("v1", "Service", name, self.namespace)
        assert found is not None
        return str(found["spec"]["clusterIP"])


@pytest.fixture
def scene(api: Api, machines: Machines, namespace: str, wait_for: WaitFor) -> Scene:
    """A namespace with nodes that report."""
    machines.frozen.clear()
    machines.skew = 0.0
    return Scene(api, namespace, wait_for)


def test_a_listener_is_present(scene: Scene, machines: Machines, operators: Operators, shop: str) -> None:
    machines.says(shop, listens=[8080])
    scene.deploy(shop)
    operators.start()
    status = scene.until(shop, "Compliant")
    assert status["kernelEvidence"]["complete"] == 1
    assert status["contractVersion"] == "1.2.3"


def test_ready_but_nothing_listening_is_absent_and_heals(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    machines.says(shop, listens=[])
    scene.deploy(shop)
    operators.start()
    status = scene.until(shop, "NonCompliant", "INTERFACE_ABSENT")
    (finding,) = status["findings"]
    assert finding["subject"] == "interface/api"
    assert finding["evidenceRefs"][0]["collector"] == "k8s-observer+ebpf"
    scene.until_told("ValidationFailed")
    machines.says(shop, listens=[8080])
    assert "observationWindows" not in scene.until(shop, "Compliant")


def test_a_dependency_that_only_fails_is_unreachable(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    store = f"{shop}-store"
    machines.says(store, listens=[8080])
    machines.says(shop, listens=[8080])
    scene.deploy(store)
    operators.start()
    scene.until(store, "Compliant")
    failing = {"address": scene.cluster_ip(store), "port": 80, "failed": 3, "failureReason": "refused"}
    scene.deploy(shop, dependencies=[store])
    scene.until(shop, "Compliant")
    stop = time.monotonic() + 120
    while scene.codes(shop) != ["DEPENDENCY_UNREACHABLE"]:
        # the connections go on failing: recent means within the staleness
        machines.says(shop, listens=[8080], peers=[{**failing, "lastFailure": stamp(-0.5)}])
        assert time.monotonic() < stop, scene.status(shop)
        time.sleep(0.5)


def test_an_undeclared_dependency_is_a_warning(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    store = f"{shop}-store"
    machines.says(store, listens=[8080])
    scene.deploy(store)
    operators.start()
    scene.until(store, "Compliant")
    peer = {"address": scene.cluster_ip(store), "port": 80, "succeeded": 1, "open": 1}
    machines.says(shop, listens=[8080], peers=[{**peer, "lastSuccess": stamp(3)}])
    scene.deploy(shop)
    status = scene.until(shop, "Warning", "DEPENDENCY_UNDECLARED")
    assert status["findings"][0]["evidenceRefs"][0]["collector"] == "ebpf"


def test_a_frozen_agent_is_stale_and_never_absent(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    machines.says(shop, listens=[])
    machines.frozen.update(machines.names)
    scene.deploy(shop)
    time.sleep(9)  # longer than the Leases hold
    operators.start()
    scene.until(shop, "Unknown", "EVIDENCE_STALE")
    machines.frozen.clear()


@pytest.mark.parametrize("skew", [-300.0, 300.0])
def test_a_node_whose_clock_is_wrong_is_judged_all_the_same(
    scene: Scene, machines: Machines, operators: Operators, shop: str, skew: float
) -> None:
    machines.skew = skew
    machines.says(shop, listens=[8080])
    scene.deploy(shop)
    time.sleep(1)
    operators.start()
    status = scene.until(shop, "Compliant")
    assert status["kernelEvidence"]["stale"] == 0


def test_a_restart_keeps_the_verdict(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    machines.says(shop, listens=[])
    scene.deploy(shop)
    operators.start()
    scene.until(shop, "NonCompliant", "INTERFACE_ABSENT")
    operators.stop()
    seen: set[str] = set()
    operators.start()
    stop = time.monotonic() + 8
    while time.monotonic() < stop:
        seen.add(scene.status(shop)["contractStatus"])
        time.sleep(0.1)
    assert seen == {"NonCompliant"}


def test_a_broken_contract_among_good_ones(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    machines.says(shop, listens=[8080])
    scene.deploy(shop)
    bad = pacto(scene.namespace, f"{shop}-bad")
    bad["spec"]["contractRef"] = {"inline": "pactoVersion: ["}
    scene.api.create(bad)
    operators.start()
    scene.until(shop, "Compliant")
    assert scene.until(f"{shop}-bad", "Invalid")["validation"]["valid"] is False


def test_one_of_two_leads_and_the_other_takes_over_at_once(
    scene: Scene, machines: Machines, operators: Operators, shop: str
) -> None:
    machines.says(shop, listens=[8080])
    lease = "/apis/coordination.k8s.io/v1/namespaces/pacto-operator-system/leases/a4917283.pacto.io"

    def holder() -> str:
        import json

        return str(json.loads(scene.api.raw("GET", lease))["spec"]["holderIdentity"])

    first = operators.start("--leader-elect", identity="one")
    scene.wait_for(lambda: holder() == "one", 60, "the first to lead")
    operators.start("--leader-elect", identity="two")
    scene.deploy(shop)
    scene.until(shop, "Compliant")
    assert holder() == "one"
    first.set()
    scene.wait_for(lambda: holder() == "two", 10, "the second to lead")
    other = f"{shop}-next"
    machines.says(other, listens=[8080])
    scene.deploy(other)
    scene.until(other, "Compliant")
