# SPDX-License-Identifier: MIT
"""What a step does to the cluster: one function for each word of the tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from kubectl_pacto.controller.manifests import agent_objects
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.node import AGENT_LABELS
from kubectl_pacto.model.node_codec import KIND
from tests.acceptance.objects import App
from tests.acceptance.release import AGENTS, INTERVAL_SECONDS
from tests.acceptance.scene import POLL_SECONDS, Scene, StepFailed
from tests.cluster.api import Object
from tests.cluster.live import Live
from tests.cluster.manifests import ready
from tests.images import runtime

AGENT_SECONDS: Final = 120.0
BY_HAND: Final = "agent-by-hand"
VERSIONS: Final = {
    "Service": "v1", "Pod": "v1", "Node": "v1", "Namespace": "v1",
    "EndpointSlice": "discovery.k8s.io/v1", "Ingress": "networking.k8s.io/v1", "Deployment": "apps/v1",
    "StatefulSet": "apps/v1", "Pacto": "pacto.trianalab.io/v1alpha1",
}  # fmt: skip
# prints the agents' pids of the node in whose pid namespace it runs; its own words do not match its pattern
FIND_AGENTS: Final = """
for one in /proc/[0-9]*; do
  words=$(tr "\\0" " " <$one/cmdline 2>/dev/null)
  case "$words" in *"pacto agent --sink "kubernete[s]*) echo ${one#/proc/};; esac
done
"""


def signal_agents(live: Live, node: str, signal: str) -> None:
    """Send a signal to the agents of a node. Raises StepFailed if there is none."""
    pids = live.on_node(node, "sh", "-c", FIND_AGENTS).stdout.split()
    if not pids:
        raise StepFailed(f"no agent runs on {node}")
    live.on_node(node, "kill", f"-{signal}", *pids)


def own_agent(node: str, without: list[str] | None = None) -> Object:
    """The agent's pod as its DaemonSet would make it, for one node; perhaps without a capability."""
    values = NodeAgentValues(
        namespace=AGENTS,
        image=runtime.NAME,
        image_pull_policy="Never",
        publish_interval=f"{INTERVAL_SECONDS:g}s",
        resync_interval="10s",
    )
    spec = agent_objects.daemon_set(values)["spec"]["template"]["spec"]
    capabilities = spec["containers"][0]["securityContext"]["capabilities"]
    capabilities["add"] = [name for name in capabilities["add"] if name not in (without or [])]
    spec |= {"nodeName": node, "terminationGracePeriodSeconds": 1}
    # labels of its own, or the DaemonSet would adopt and end it
    metadata = {"name": BY_HAND, "namespace": AGENTS, "labels": {"app": BY_HAND}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def start_agent(live: Live, node: str, without: list[str] | None = None) -> None:
    """Run an agent by hand, in the place of the one that is there, and wait for its first object."""
    stop_agent(live)
    before = live.api.get(API_VERSION, KIND, node, AGENTS)
    live.api.create(own_agent(node, without))
    deadline = time.monotonic() + AGENT_SECONDS
    while True:
        now = live.api.get(API_VERSION, KIND, node, AGENTS)
        pod = live.api.get("v1", "Pod", BY_HAND, AGENTS) or {}
        if now is not None and now.get("collection") != (before or {}).get("collection") and ready(pod):
            return
        if time.monotonic() > deadline:
            raise StepFailed(f"the agent by hand publishes nothing\n{live.describe(AGENTS)}")
        time.sleep(POLL_SECONDS)


def stop_agent(live: Live) -> None:
    """End the agent by hand, if there is one."""
    live.kubectl("delete", "pod", BY_HAND, "-n", AGENTS, "--ignore-not-found", "--grace-period=1", "--wait")


def forge(live: Live, node: str, *, name: str = "", labels: dict[str, str] | None = None) -> None:
    """A node object that an agent of this node did not write, and a fresh heartbeat beside it."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    metadata = {"name": name or node, "namespace": AGENTS, "labels": labels or {}}
    live.api.apply(
        {
            "apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "nodeName": node,
            "lastPublished": stamp, "collection": {"state": "Running"}, "pods": [],
        },
        {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
            "spec": {"holderIdentity": node, "leaseDurationSeconds": 600, "renewTime": stamp},
        },
    )  # fmt: skip


def unforge(live: Live, name: str) -> None:
    """Take that away."""
    live.api.delete(API_VERSION, KIND, name, AGENTS)
    live.api.delete("coordination.k8s.io/v1", "Lease", name, AGENTS)


def in_app(scene: Scene, app: str, script: str) -> None:
    """Run a line of shell in the main container of each pod of an app."""
    for pod in scene.pods(app):
        name = pod["metadata"]["name"]
        scene.world.live.kubectl("exec", "-n", scene.namespace, name, "-c", "main", "--", "sh", "-c", script)


def _patch(scene: Scene, given: dict[str, Any]) -> None:
    api, kind = scene.world.live.api, given["kind"]
    path = api.path(VERSIONS[kind], kind, scene.namespace, given["name"])
    path += "/status" if given.get("status") else ""
    api.raw("PATCH", path, json.dumps(given["with"]), "application/merge-patch+json")


def _redeclare(scene: Scene, given: dict[str, Any]) -> None:
    """The app's contract with other dependencies, as a new version of it would bring."""
    name = given["app"]
    app = App(scene.namespace, name, {**scene.app(name).raw, "needs": given["needs"]})
    change = {"spec": {"contractRef": app.pacto()["spec"]["contractRef"]}}
    scene.world.live.api.patch(VERSIONS["Pacto"], "Pacto", name, change, scene.namespace)


def _apply(scene: Scene, given: Object) -> None:
    given = {"apiVersion": VERSIONS.get(given["kind"], ""), **given}
    given["metadata"] = {"namespace": scene.namespace, **given["metadata"]}
    scene.world.live.api.apply(given)


def _delete(scene: Scene, given: dict[str, str]) -> None:
    scene.world.live.api.delete(VERSIONS[given["kind"]], given["kind"], given["name"], scene.namespace)


def _agent(scene: Scene, given: dict[str, Any] | None) -> None:
    start_agent(scene.world.live, scene.world.mine, (given or {}).get("without"))


def _forge(scene: Scene, given: dict[str, Any]) -> None:
    labels = AGENT_LABELS if given.get("labelled") else {"app": "forged"}
    forge(scene.world.live, scene.world.mine, name=given.get("name", ""), labels=dict(labels))


ACTIONS: Final[dict[str, Callable[[Scene, Any], None]]] = {
    "deploy": lambda scene, names: scene.deploy(*names),
    "sh": lambda scene, given: in_app(scene, given["app"], given["script"]),
    "signal": lambda scene, given: in_app(scene, given["app"], f"kill -{given['signal']} 1"),
    "patch": _patch,
    "redeclare": _redeclare,
    "apply": _apply,
    "delete": _delete,
    "touch": lambda scene, _: scene.touch(),
    "wait": lambda _, seconds: time.sleep(seconds),
    "agent": _agent,
    "freeze": lambda scene, _: signal_agents(scene.world.live, scene.world.mine, "STOP"),
    "thaw": lambda scene, _: signal_agents(scene.world.live, scene.world.mine, "CONT"),
    "forge": _forge,
    "unforge": lambda scene, name: unforge(scene.world.live, name or scene.world.mine),
}


def act(scene: Scene, name: str, argument: Any) -> None:
    """Carry one out. Raises ValueError for a word that is none."""
    if name not in ACTIONS:
        raise ValueError(f"no action {name}; there are: {', '.join(sorted(ACTIONS))}")
    ACTIONS[name](scene, argument)
