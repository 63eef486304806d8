# SPDX-License-Identifier: MIT
"""Names, paths and addresses of one cluster; everything else asks here.

Every address lives in network namespaces that belong to one cluster and have no default route, so
two clusters use the same addresses and never meet, and nothing in them reaches past the machine.
What is global to the machine (network namespaces, cgroups) carries the cluster's name, joined by an
underscore, which no name holds: cluster `a` with node `b` is not cluster `a-b`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
VERSIONS: Final = {"1.34": "1.34.4", "1.30": "1.30.14"}
DEFAULT_VERSION: Final = "1.34.4"
SERVICES: Final = "10.96.0.0/16"
PODS: Final = "10.244.0.0/16"
API_SERVICE_ADDRESS: Final = "10.96.0.1"
CONTROL_PLANE_ADDRESS: Final = "172.30.0.1"
API_PORT: Final = 6443
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class ClusterError(Exception):
    """What the command reports in one line (and a log's tail) instead of a traceback."""


def cache() -> Path:
    """Where built things are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubectl-pacto"


def full_version(version: str) -> str:
    """1.30 or 1.30.14 -> 1.30.14; only versions whose module is committed here."""
    known = VERSIONS.get(version.removeprefix("v"), version.removeprefix("v"))
    if known not in VERSIONS.values():
        raise ClusterError(f"no Kubernetes {version} here; of: {', '.join(VERSIONS.values())}")
    return known


def valid_name(name: str, what: str) -> str:
    """A name that is safe as a directory, a network namespace, a cgroup and a host name."""
    if not NAME.fullmatch(name):
        raise ClusterError(f"{what} {name!r}: lower case letters, digits and dashes, at most 40")
    return name


@dataclass(frozen=True)
class Cluster:
    """One cluster by its name."""

    name: str

    @property
    def state(self) -> Path:
        """Everything the cluster writes."""
        return cache() / "clusters" / self.name

    @property
    def pki(self) -> Path:
        """Keys, certificates and kubeconfigs."""
        return self.state / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The admin's, for this machine: it goes through the loopback gateway."""
        return self.state / "kubeconfig"

    @property
    def netns(self) -> str:
        """The control plane's network namespace."""
        return f"pacto_{self.name}"

    @property
    def version(self) -> str:
        """The Kubernetes version that `up` chose."""
        path = self.state / "version"
        return path.read_text().strip() if path.exists() else DEFAULT_VERSION

    def log(self, component: str) -> Path:
        """Where a component's output goes."""
        return self.state / "log" / f"{component}.log"

    def nodes(self) -> list[Node]:
        """The nodes that were started, by number."""
        found = [Node(self, path.parent.name) for path in (self.state / "nodes").glob("*/number")]
        return sorted(found, key=lambda node: node.number)


@dataclass(frozen=True)
class Node:
    """One node of a cluster by its name."""

    cluster: Cluster
    name: str

    @property
    def state(self) -> Path:
        """What the node writes: /run/node inside it."""
        return self.cluster.state / "nodes" / self.name

    @property
    def number(self) -> int:
        """Its place in the cluster, from 1; addresses follow from it."""
        return int((self.state / "number").read_text())

    @property
    def netns(self) -> str:
        """The node's network namespace, and its cgroup's name."""
        return f"{self.cluster.netns}_{self.name}"

    @property
    def address(self) -> str:
        """The node's own address."""
        return f"172.30.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The node's pod network."""
        return f"10.244.{self.number}.0/24"
