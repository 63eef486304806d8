# SPDX-License-Identifier: MIT
"""The same cluster from kind, for machines with a docker engine: CLUSTER=kind."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.layout import ClusterError, cache

KIND: Final = "sigs.k8s.io/kind@v0.33.0"
# kind publishes a node image per minor version; its own default follows kind's release
# the third is for tests that run a node of their own kind
WORKERS: Final = 3


def docker_missing() -> str:
    """Why there is no docker engine to run kind on; empty when there is one."""
    if shutil.which("docker") is None:
        return "CLUSTER=kind needs a docker engine, and docker is not on PATH"
    done = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return f"CLUSTER=kind needs a docker engine, and docker does not answer: {said}"
    return ""


def kind_program() -> str:
    """kind from PATH, else compiled from its Go module into the cache."""
    if found := shutil.which("kind"):
        return found
    path = cache() / KIND.rpartition("@")[2] / "kind"
    if not path.exists():
        environment = os.environ | {"GOBIN": str(path.parent)}
        try:
            subprocess.run(["go", "install", KIND], env=environment, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ClusterError(f"kind is not on PATH and cannot be compiled: {error}") from error
    return str(path)


def run(*command: str, text: str | None = None) -> str:
    """Run a program, its words only when it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{' '.join(command[:3])}: {done.stderr.strip()}")
    return done.stdout


class KindCluster:
    """A kind cluster of a control plane and three workers."""

    provider = "kind"

    def __init__(self, name: str) -> None:
        """Nothing is started yet."""
        self.name = name
        self.state = cache() / "kind-clusters" / name
        self.kubeconfig = self.state / "kubeconfig"

    @property
    def nodes(self) -> list[str]:
        """The workers, as Kubernetes names them."""
        names = run(kind_program(), "get", "nodes", "--name", self.name).split()
        return sorted(name for name in names if not name.endswith("-control-plane"))

    def up(self, version: str) -> None:
        """Create the cluster unless it is there; kind's own image decides the patch version."""
        if absent := docker_missing():
            raise ClusterError(absent)
        program = kind_program()
        if self.name not in run(program, "get", "clusters").split():
            begin = time.monotonic()
            roles = [{"role": "control-plane"}, *({"role": "worker"} for _ in range(WORKERS))]
            config = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": roles}
            image = os.environ.get("KIND_IMAGE", f"kindest/node:v{version}")
            run(
                program,
                "create",
                "cluster",
                "--name",
                self.name,
                "--image",
                image,
                "--wait",
                "180s",
                "--config=-",
                text=json.dumps(config),
            )
            print(f"kind cluster ready in {time.monotonic() - begin:.1f} s", flush=True)
        self.write_kubeconfig(program)

    def write_kubeconfig(self, program: str) -> None:
        """kind's kubeconfig with its certificates as files, the form the tests' client reads."""
        self.state.mkdir(parents=True, exist_ok=True)
        source = self.state / "kind.kubeconfig"
        source.write_text(run(program, "get", "kubeconfig", "--name", self.name))
        config = json.loads(run("kubectl", f"--kubeconfig={source}", "config", "view", "--raw", "-o", "json"))
        for entry in (config["clusters"][0]["cluster"], config["users"][0]["user"]):
            for key in [key for key in entry if key.endswith("-data")]:
                target = self.state / f"{key.removesuffix('-data')}.pem"
                target.touch(mode=0o600)
                target.write_bytes(base64.b64decode(entry.pop(key)))
                entry[key.removesuffix("-data")] = str(target)
        self.kubeconfig.write_text(json.dumps(config, indent=1))

    def add_nodes(self, names: Sequence[str]) -> None:
        """kind makes its nodes with the cluster."""

    def load(self, archive: Path) -> None:
        """Import an image archive into every node."""
        run(kind_program(), "load", "image-archive", str(archive), "--name", self.name)

    def kubectl(self, arguments: Sequence[str]) -> list[str]:
        """kubectl as admin."""
        return ["kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]

    def node_command(self, node: str, arguments: Sequence[str]) -> list[str]:
        """A command line that runs in a node."""
        return ["docker", "exec", node, *arguments]

    def down(self) -> None:
        """Delete the cluster."""
        run(kind_program(), "delete", "cluster", "--name", self.name)
        shutil.rmtree(self.state, ignore_errors=True)
