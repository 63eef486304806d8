# SPDX-License-Identifier: MIT
"""Everything that the operator and the agent ask of an API server, done once, as an account of few rights.

What is refused comes from where a person would see it: the log, an error that ends a step, a status.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from kubectl_pacto.collect.live_kinds import LIVE_KINDS
from kubectl_pacto.collect.live_nodes import ONE_BY_ONE
from kubectl_pacto.controller.connection import Connection
from kubectl_pacto.controller.downloads import own_credentials
from kubectl_pacto.controller.election import LEASE_NAME, Election
from kubectl_pacto.controller.node_agent import GONE_SECONDS, NodeAgents
from kubectl_pacto.controller.operator import Operator
from kubectl_pacto.controller.options import Settings
from kubectl_pacto.controller.revision_table import decode_revision
from kubectl_pacto.errors import PactoError
from kubectl_pacto.kube.errors import ApiConflict
from kubectl_pacto.kube.polled import PolledObject
from kubectl_pacto.kube.stream import Event, Watch
from kubectl_pacto.model.ociref import OciRef
from kubectl_pacto.model.pacto import Pacto
from pacto_agent.sinks.kubernetes import KubernetesSink
from tests.cluster.api import Api, Object
from tests.cluster_operator.machines import LABELS, stamp

PATIENCE = 90.0
GROUP = "pacto.trianalab.io/v1alpha1"
CONTRACT = """
pactoVersion: "2.0"
service: {name: walk, version: 1.0.0}
configurations:
- {name: plain, required: true, schema: plain.json}
- {name: hidden, required: true, schema: hidden.json}
"""


class Refusals(logging.Handler):
    """What was refused, as it was said."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.say(record.getMessage())

    def say(self, text: str) -> None:
        """Keep it if it is a refusal."""
        if "forbidden" in text or "not allowed" in text:
            self.found.append(text)


class Accepted:
    """A watch, and whether the server has accepted it: until then its refusal may be on its way."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.is_accepted = False

    def events(self, path: str) -> Iterator[Event | None]:
        """The same; its first word says that it is accepted."""
        for event in self._watch.events(path):
            self.is_accepted = True
            yield event

    def stop(self) -> None:
        """End it."""
        self._watch.stop()


class Watching:
    """A connection whose watches tell whether they are accepted."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def watch(self) -> Accepted:
        """One more."""
        return Accepted(self._connection.watch())


@dataclass
class Walk:
    """One walk: `name` is that of the Pacto, node and more that it uses alone."""

    admin: Api
    connection: Connection
    settings: Settings
    namespace: str
    name: str

    def __post_init__(self) -> None:
        self.client = self.connection.client()
        self.operator = Operator(self.settings, cast("Connection", Watching(self.connection)))
        self.refusals = Refusals()

    def run(self, *steps: Callable[[Walk], None]) -> list[str]:
        """What was refused on these steps."""
        log = logging.getLogger("kubectl_pacto")
        log.addHandler(self.refusals)
        try:
            for step in steps:
                try:
                    step(self)
                except PactoError as error:
                    self.refusals.say(str(error))
        finally:
            log.removeHandler(self.refusals)
            self.operator.close()
            self.client.close()
        return self.refusals.found


def follow(walk: Walk) -> None:
    """List and watch every kind until each is followed, or one may not be."""
    walk.operator.watch()
    reflectors = walk.operator.reflectors.values()
    end = time.monotonic() + PATIENCE

    def is_followed(one: Any) -> bool:
        is_watched = one._watch is not None and one._watch.is_accepted
        return one.is_listed and (is_watched or isinstance(one, PolledObject))

    while not walk.refusals.found:
        if all(is_followed(one) for one in reflectors):
            return
        assert time.monotonic() < end, [one.path for one in reflectors if not is_followed(one)]
        time.sleep(0.02)


def check(walk: Walk) -> None:
    """A whole pass: what is bound is read, a revision made, the status written, the verdict told."""
    known = _put_pacto(walk)
    key = walk.namespace, walk.name
    walk.operator._reconciler.reconcile(walk.client, key, time.monotonic())
    found = walk.admin.get(GROUP, "Pacto", walk.name, walk.namespace) or {}
    walk.refusals.say(json.dumps(found.get("status", {})))
    for raw in walk.admin.items(GROUP, "PactoRevision", walk.namespace):
        if raw["spec"]["pactoRef"] == walk.name:
            revision = replace(decode_revision(raw), created=0.0)
            # as many as it takes for this one to be the one too many
            spare = [replace(revision, name=f"none-{number:04}", created=1.0) for number in range(100)]
            walk.operator._registries.revisions.prune(walk.client, known, [revision, *spare], set())


def _put_pacto(walk: Walk) -> Any:
    """A Pacto of the walk's own, in the API and in the operator's copy."""
    bindings = [
        {"configuration": "plain", "kind": "ConfigMap", "name": "bound", "key": "x", "format": "yaml"},
        {"configuration": "hidden", "kind": "Secret", "name": "bound"},
    ]
    made = walk.admin.create(
        {
            "apiVersion": GROUP,
            "kind": "Pacto",
            "metadata": {"name": walk.name, "namespace": walk.namespace},
            "spec": {
                "contractRef": {"inline": CONTRACT},
                "target": {"serviceName": walk.name, "configBindings": bindings},
            },
        }
    )
    (kind,) = [one for one in LIVE_KINDS if one.kind == "Pacto"]
    known = kind.decode(made)
    walk.operator.live.pactos.put((walk.namespace, walk.name), known)
    return known


def pull(walk: Walk) -> None:
    """A pull secret is read."""
    pacto = Pacto(walk.namespace, walk.name, oci="oci://registry.example/a", pull_secret="bound")
    own_credentials(walk.client, pacto, OciRef("registry.example", "a"))


def lead(walk: Walk) -> None:
    """The Lease of the leader is taken, and renewed."""
    walk.admin.delete("coordination.k8s.io/v1", "Lease", LEASE_NAME, walk.settings.namespace)
    client = walk.connection.hasty_client()
    election = Election(client, walk.settings.namespace, walk.name)
    election._attempt()
    election._attempt()
    client.close()


def run_agents(walk: Walk) -> None:
    """The DaemonSet is made, changed and removed."""
    values = walk.settings.agent
    assert values is not None
    walk.admin.delete("apps/v1", "DaemonSet", "pacto-node-agent", values.namespace)
    for wanted in (values, replace(values, mapper="iter"), None):
        for _ in range(20):
            try:
                NodeAgents(wanted, values.namespace).ensure(walk.client)
                break
            except ApiConflict:  # the DaemonSet's controller was first
                time.sleep(0.1)


def clean(walk: Walk) -> None:
    """What a vanished node left is removed."""
    values, now = walk.settings.agent, [0.0]
    assert values is not None
    gone = f"gone-{walk.name}"
    metadata = {"name": gone, "namespace": values.namespace, "labels": LABELS}
    node: Object = {"collection": {"state": "Running"}, "nodeName": gone}
    walk.admin.create({"apiVersion": GROUP, "kind": "NodeRuntimeObservation", "metadata": metadata, **node})
    lease = {"spec": {"holderIdentity": gone, "renewTime": stamp(), "leaseDurationSeconds": 90}}
    walk.admin.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, **lease}
    )
    agents = NodeAgents(values, values.namespace, lambda: now[0])
    assert agents.clean(walk.client) == 0
    now[0] = GONE_SECONDS
    assert agents.clean(walk.client) >= 2


def read_nodes(walk: Walk) -> None:
    """Node objects are read, one by one and all at once."""
    walk.operator.nodes.refresh(walk.client, ["some"])
    walk.operator.nodes.refresh(walk.client, [f"node-{number}" for number in range(ONE_BY_ONE + 2)])


def report(walk: Walk) -> None:
    """An agent starts, publishes twice, and renews its heartbeat twice."""
    agents = walk.settings.agent_namespace
    client = walk.client
    metadata = {"name": walk.name, "namespace": agents, "labels": LABELS}
    node = {
        "apiVersion": GROUP,
        "kind": "NodeRuntimeObservation",
        "metadata": metadata,
        "nodeName": walk.name,
        "collection": {"state": "Running"},
        "pods": [],
    }
    spec = {"holderIdentity": walk.name, "leaseDurationSeconds": 90, "renewTime": stamp()}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": walk.name, "namespace": agents},
        "spec": spec,
    }
    for _ in range(2):  # the second finds what the first left
        sink = KubernetesSink(client, namespace=agents, name=walk.name, interval=0.0)
        sink.load()
        sink.put(node)
        sink.renew(lease)


OPERATOR = (check, pull, lead, run_agents, clean, read_nodes)
