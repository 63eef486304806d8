# SPDX-License-Identifier: MIT
"""The bundled objects are objects that `evaluate` takes, and pods fill them in."""

from __future__ import annotations

from kubectl_pacto.cli.demo.objects import APPS, LivePod, bundled, cluster_objects
from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.engine.layers import validate
from kubectl_pacto.model.cluster import Cluster

START = 1_796_000_000.5


def pods(*, ready: bool = True) -> dict[str, LivePod]:
    return {
        app.name: LivePod(f"uid-{app.name}", "demo-node", app.address, "c0de", START, ready) for app in APPS
    }


def cluster(*, ready: bool = True) -> Cluster:
    found = Objects()
    for item in cluster_objects(pods(ready=ready), {}):
        found.add(item, file="bundled")
    assert not found.skipped
    return found.cluster()


def test_every_bundled_contract_is_valid() -> None:
    for item in bundled():
        if item["kind"] == "Pacto":
            validated = validate(item["spec"]["contractRef"]["inline"])
            assert validated.contract is not None
            assert not validated.errors
            assert validated.contract.service == item["metadata"]["name"]


def test_each_app_has_its_pacto_workload_and_pod() -> None:
    made = cluster()
    names = sorted(app.name for app in APPS)
    assert sorted(item.name for item in made.pactos) == names
    assert sorted(item.name for item in made.workloads if item.kind == "Deployment") == names
    assert sorted(pod.labels["app"] for pod in made.pods) == names
    assert all(pod.running and pod.ready and pod.node == "demo-node" for pod in made.pods)


def test_a_pod_carries_what_its_process_is() -> None:
    made = cluster()
    (pod,) = (pod for pod in made.pods if pod.labels["app"] == "inventory")
    assert pod.uid == "uid-inventory"
    assert pod.ips == ("10.244.7.12",)
    assert pod.started == pod.container_started == int(START)  # a kubelet's times have whole seconds


def test_an_endpoint_is_ready_when_its_pod_is() -> None:
    for ready in (True, False):
        made = cluster(ready=ready)
        ends = [end for item in made.slices for end in item.endpoints]
        assert [end.ready for end in ends] == [ready] * 3
        assert all(made.pod("shop", end.pod) for end in ends)


def test_statuses_are_carried_into_the_next_pass() -> None:
    status = {"contractStatus": "Unknown"}
    made = cluster_objects(pods(), {("shop", "orders"): status})
    carried = {item["metadata"]["name"]: item.get("status") for item in made if item["kind"] == "Pacto"}
    assert carried.pop("orders") == status
    assert set(carried.values()) == {None}


def test_bundled_objects_are_not_changed_by_filling_them_in() -> None:
    cluster_objects(pods(), {})
    assert all("status" not in item for item in bundled())
