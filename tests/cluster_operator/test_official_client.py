# SPDX-License-Identifier: MIT
"""What we write, read by the official client with its typed models; what we read, beside what it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client as official
from kubernetes import config as official_config
from kubernetes import watch as official_watch

from kubectl_pacto.controller.connection import connect
from kubectl_pacto.controller.election import LEASE_NAME
from kubectl_pacto.controller.manifests.agent_objects import before_the_agent
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.controller.node_agent import NodeAgents
from kubectl_pacto.kube.lists import list_all, with_query
from kubectl_pacto.kube.stream import Event
from tests.cluster.api import Api, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.cluster_operator.conftest import OPERATORS, Operators
from tests.cluster_operator.machines import Machines
from tests.cluster_operator.test_scenarios import Scene

pytestmark = pytest.mark.cluster
GROUP, VERSION = "pacto.trianalab.io", "v1alpha1"
VALUES = NodeAgentValues(namespace="agents-official")


@pytest.fixture
def theirs(api_server: Live) -> Iterator[Any]:
    """The official client, by the same kubeconfig."""
    with official_config.new_client_from_config(str(api_server.kubeconfig), persist_config=False) as made:
        yield made


@pytest.fixture
def scene(api: Api, machines: Machines, namespace: str, wait_for: WaitFor, shop: str) -> Scene:
    """A target that is ready and does not listen."""
    machines.frozen.clear()
    machines.skew = 0.0
    machines.says(shop, listens=[])
    made = Scene(api, namespace, wait_for)
    made.deploy(shop)
    return made


def test_statuses_events_and_the_lease_have_their_kinds_shape(
    scene: Scene, theirs: Any, operators: Operators, shop: str
) -> None:
    namespace = scene.namespace
    operators.start("--leader-elect", identity="typed")
    scene.until(shop, "NonCompliant", "INTERFACE_ABSENT")
    pactos = official.CustomObjectsApi(theirs)

    def both() -> tuple[Object, Object] | None:
        """What the official client reads and what we do, of one version: the operator goes on checking."""
        theirs = pactos.get_namespaced_custom_object_status(GROUP, VERSION, namespace, "pactos", shop)
        ours = scene.api.get(f"{GROUP}/{VERSION}", "Pacto", shop, namespace) or {}
        versions = {one["metadata"]["resourceVersion"] for one in (theirs, ours)}
        return (theirs, ours) if len(versions) == 1 else None

    found, ours = scene.wait_for(both, 30, "one version for both") or ({}, {})
    assert found["status"] == ours["status"]
    (revision,) = pactos.list_namespaced_custom_object(GROUP, VERSION, namespace, "pactorevisions")["items"]
    assert revision["metadata"]["name"] == found["status"]["currentRevision"]
    scene.until_told("RevisionCreated")
    scene.until_told("ValidationFailed")
    events = official.CoreV1Api(theirs).list_namespaced_event(
        namespace, field_selector=f"involvedObject.name={shop}"
    )
    told = {one.reason: one for one in events.items}
    assert {"RevisionCreated", "ValidationFailed"} <= told.keys()
    one = told["ValidationFailed"]
    assert (one.type, one.source.component, one.count) == ("Warning", "pacto-controller", 1)
    assert one.involved_object.uid == found["metadata"]["uid"]
    assert one.last_timestamp.tzinfo is not None
    lease = official.CoordinationV1Api(theirs).read_namespaced_lease(LEASE_NAME, OPERATORS)
    assert lease.spec.holder_identity == "typed"
    assert lease.spec.lease_duration_seconds == 15
    assert lease.spec.renew_time >= lease.spec.acquire_time


def test_lists_in_pages_and_watches_give_what_the_official_client_gives(
    api: Api, api_server: Live, theirs: Any, namespace: str
) -> None:
    for number in range(7):
        metadata = {"name": f"m{number}", "namespace": namespace, "labels": {"n": str(number)}}
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    connection = connect(str(api_server.kubeconfig))
    client = connection.client()
    ours = list_all(client, path, lambda raw: raw["metadata"]["resourceVersion"], limit=2)
    core = official.CoreV1Api(theirs)
    listed = core.list_namespaced_config_map(namespace)
    assert sorted(ours.items) == sorted(one.metadata.resource_version for one in listed.items)
    api.delete("v1", "ConfigMap", "m3", namespace)
    api.patch("v1", "ConfigMap", "m4", {"data": {"a": "c"}}, namespace)
    watched = with_query(path, watch=1, resourceVersion=ours.version, timeoutSeconds=2)
    seen = [
        (event.type, event.object["metadata"]["name"])
        for event in connection.watch().events(watched)
        if isinstance(event, Event)
    ]
    told = [
        (event["type"], event["object"].metadata.name)
        for event in official_watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=ours.version, timeout_seconds=2
        )
    ]
    assert seen == told == [("DELETED", "m3"), ("MODIFIED", "m4")]
    client.close()


def test_the_daemon_set_has_its_kinds_shape(api: Api, api_server: Live, theirs: Any) -> None:
    api.apply(*before_the_agent(VALUES))
    client = connect(str(api_server.kubeconfig)).client()
    NodeAgents(VALUES, VALUES.namespace).ensure(client)
    made = official.AppsV1Api(theirs).read_namespaced_daemon_set("pacto-node-agent", VALUES.namespace)
    (container,) = made.spec.template.spec.containers
    assert container.security_context.capabilities.add == ["BPF", "PERFMON", "SYS_PTRACE"]
    assert container.security_context.capabilities.drop == ["ALL"]
    assert container.security_context.privileged is False
    assert made.spec.template.spec.host_pid is True
    (mount,) = container.volume_mounts
    assert (mount.mount_path, mount.read_only) == ("/host/cgroup", True)
    NodeAgents(None, VALUES.namespace).ensure(client)
    client.close()
