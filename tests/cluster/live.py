# SPDX-License-Identifier: MIT
"""A cluster as tests use it, whichever made it: ours on this machine, or kind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from tests.cluster import cluster, kind
from tests.cluster.api import Api, ApiError, Object
from tests.cluster.layout import Cluster, ClusterError

NODES: Final = ("node-a", "node-b")
LOG_LINES: Final = "40"


class Provider(Protocol):
    """What makes and ends clusters."""

    name: str
    provider: str
    kubeconfig: Path

    @property
    def nodes(self) -> list[str]:
        """The nodes that run pods."""

    def up(self, version: str) -> None:
        """Bring the control plane up."""

    def add_nodes(self, names: Sequence[str]) -> None:
        """Bring nodes up, where they do not come with the cluster."""

    def load(self, archive: Path) -> None:
        """Import an image archive into every node."""

    def kubectl(self, arguments: Sequence[str]) -> list[str]:
        """kubectl as admin."""

    def node_command(self, node: str, arguments: Sequence[str]) -> list[str]:
        """A command line that runs in a node."""

    def down(self) -> None:
        """End it."""


class LocalCluster:
    """A cluster of this package."""

    provider = "local"

    def __init__(self, name: str, owner: int | None = None) -> None:
        """Nothing is started yet; with an owner it is swept once that process is gone."""
        self.name = name
        self.owner = owner
        self.cluster = Cluster(name)
        self.kubeconfig = self.cluster.kubeconfig

    @property
    def nodes(self) -> list[str]:
        """The nodes by number."""
        return [node.name for node in self.cluster.nodes()]

    def up(self, version: str) -> None:
        """The control plane."""
        cluster.up(self.cluster, version, self.owner)

    def add_nodes(self, names: Sequence[str]) -> None:
        """One after the other."""
        for name in names:
            cluster.add_node(self.cluster, name)

    def load(self, archive: Path) -> None:
        """Into every node."""
        cluster.load(self.cluster, archive)

    def kubectl(self, arguments: Sequence[str]) -> list[str]:
        """kubectl of the cluster's own version."""
        return cluster.kubectl(self.cluster, arguments)

    def node_command(self, node: str, arguments: Sequence[str]) -> list[str]:
        """In all the node's namespaces."""
        return cluster.exec_command(self.cluster, node, arguments)

    def down(self) -> None:
        """Leave nothing."""
        cluster.down(self.cluster)


def provider_name() -> str:
    """CLUSTER, else kind where a docker engine answers, else ours."""
    chosen = os.environ.get("CLUSTER") or ("local" if kind.docker_missing() else "kind")
    if chosen not in ("kind", "local"):
        raise ClusterError(f"CLUSTER={chosen}: kind or local")
    return chosen


def provider(name: str, owner: int | None = None) -> Provider:
    """The cluster of this name from the chosen provider."""
    return kind.KindCluster(name) if provider_name() == "kind" else LocalCluster(name, owner)


def missing() -> str:
    """Why the chosen provider cannot work here; empty when it can."""
    return kind.docker_missing() if provider_name() == "kind" else cluster.missing()


class Live:
    """A running cluster: its API, its kubectl, its nodes."""

    def __init__(self, made_by: Provider) -> None:
        """Over a provider that is up."""
        self.provider = made_by
        self.kubeconfig = made_by.kubeconfig
        self.api = Api.from_kubeconfig(made_by.kubeconfig)

    @property
    def nodes(self) -> list[str]:
        """The two nodes that any test may put pods on; a cluster may have more for one kind of test."""
        return self.provider.nodes[: len(NODES)]

    def load(self, archive: Path) -> None:
        """Import an image archive into every node."""
        self.provider.load(archive)

    def kubectl(
        self, *arguments: str, text: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; with check a failure raises with what kubectl said."""
        return self._run(self.provider.kubectl(arguments), text, check)

    def on_node(self, node: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in a node."""
        return self._run(self.provider.node_command(node, arguments), None, check)

    def in_pod(self, namespace: str, pod: str, *arguments: str) -> str:
        """Run a command in a pod; its output."""
        return self.kubectl("exec", "-n", namespace, pod, "--", *arguments).stdout

    def token(self, namespace: str, account: str) -> str:
        """A token of a ServiceAccount, by the token request API: without any pod's claims."""
        path = self.api.path("v1", "ServiceAccount", namespace, account) + "/token"
        body = '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
        return str(json.loads(self.api.raw("POST", path, body))["status"]["token"])

    def as_token(self, token: str) -> Api:
        """The API as whom the token names."""
        authority = json.loads(self.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority"]
        return self.api.with_token(token, Path(authority))

    def pods(self, namespace: str, selector: str = "") -> list[Object]:
        """The pods of a namespace."""
        return self.api.items("v1", "Pod", namespace, selector)

    def describe(self, namespace: str) -> str:
        """The objects, events and logs of a namespace: what a failure prints."""
        parts = []
        for kinds in ("all,endpointslices", "pactos,noderuntimeobservations,leases", "events"):
            done = self.kubectl("get", kinds, "-o", "wide", "-n", namespace, check=False)
            if done.stdout:
                parts.append(f"--- {kinds} of {namespace}\n{done.stdout}")
        try:
            names = [pod["metadata"]["name"] for pod in self.pods(namespace)]
        except (OSError, ApiError) as error:
            return "\n".join([*parts, f"--- no pods: {error}"])
        for name in names:
            done = self.kubectl(
                "logs", "-n", namespace, name, "--all-containers", f"--tail={LOG_LINES}", check=False
            )
            parts.append(f"--- logs of {name}\n{done.stdout or done.stderr}")
        return "\n".join(parts)

    def _run(self, command: list[str], text: str | None, check: bool) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=300)
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done
