# SPDX-License-Identifier: MIT
"""What a person waits for: the plugin's start and its `status`, beside kubectl on the same API server.

`python -m tests.bench.cli` brings a control plane up (root); `--stand-in` asks a small server in Python
instead, which answers as the API server does and needs no root. The plugin is installed for it, as pip
does, with its bytecode. Goals: `--version` in 80 ms, `status` in 150 ms beyond the server's own time.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl_pacto.controller.generate import crds
from kubectl_pacto.kube.connect import connect
from kubectl_pacto.kube.kubeconfig import Flags
from tests.cluster import live
from tests.cluster.api import Api
from tests.cluster.layout import DEFAULT_VERSION, REPOSITORY, full_version
from tests.support.fleet_api import FleetApi, serve_fleet
from tests.unit.cli.fleet_scene import fill as fill_scene
from tests.unit.cli.fleet_scene import pacto

RUNS: Final = 15
PACTOS: Final = 50
VERSION_GOAL: Final = 0.080
STATUS_GOAL: Final = 0.150
NAMESPACE: Final = "bench"
# what `status` asks for, in its order
REQUESTS: Final = (
    f"/apis/pacto.trianalab.io/v1alpha1/namespaces/{NAMESPACE}/pactos?limit=500",
    "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dpacto-operator&limit=500",
    "/apis/apps/v1/namespaces/pacto-node-agent/daemonsets?labelSelector="
    "app.kubernetes.io%2Fname%3Dpacto-node-agent&limit=500",
    "/api/v1/nodes?limit=500",
    "/apis/pacto.trianalab.io/v1alpha1/namespaces/pacto-node-agent/noderuntimeobservations?labelSelector="
    "app.kubernetes.io%2Fname%3Dpacto-node-agent&limit=500",
    "/apis/coordination.k8s.io/v1/namespaces/pacto-node-agent/leases?limit=500",
)


@dataclass(frozen=True)
class Taken:
    """Seconds of several runs."""

    wall: Sequence[float]
    processor: Sequence[float]

    @property
    def typical(self) -> float:
        """The median."""
        return statistics.median(self.wall)

    def __str__(self) -> str:
        best, processor = min(self.wall), statistics.median(self.processor)
        return f"{self.typical * 1e3:6.1f} ms, best {best * 1e3:6.1f}, processor {processor * 1e3:6.1f}"


def start(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds from start to end of one process, and of processor time."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {said.decode()}")
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime


def measure(commands: dict[str, Sequence[str]], environment: dict[str, str]) -> dict[str, Taken]:
    """All commands in turn, several times: what disturbs the machine disturbs all of them."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for run in range(RUNS + 1):
        for name, command in commands.items():
            one = start(command, environment)
            if run:  # the first fills caches
                taken[name].append(one)
    return {name: Taken(*zip(*runs, strict=True)) for name, runs in taken.items()}


def server_time(kubeconfig: Path) -> float:
    """Seconds that the server takes for what `status` asks, over one open connection."""
    session = connect(Flags(kubeconfig=str(kubeconfig)))
    found = []
    for run in range(RUNS + 1):
        begun = time.perf_counter()
        for path in REQUESTS:
            session.client.get(path)
        if run:
            found.append(time.perf_counter() - begun)
    session.client.close()
    return statistics.median(found)


def fill(api: Api, kubectl: Sequence[str]) -> None:
    """The kinds, and Pactos with a status."""
    for crd in crds():
        api.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.dumps(crd))
    subprocess.run(
        [*kubectl, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name in (NAMESPACE, "pacto-node-agent"):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    path = f"/apis/pacto.trianalab.io/v1alpha1/namespaces/{NAMESPACE}/pactos"
    for number in range(PACTOS):
        raw = {
            "apiVersion": "pacto.trianalab.io/v1alpha1",
            "kind": "Pacto",
            "metadata": {"name": f"service-{number}", "namespace": NAMESPACE},
            "spec": {"contractRef": {"inline": "x"}, "target": {"serviceName": f"service-{number}"}},
        }
        api.raw("POST", path, json.dumps(raw))


@contextmanager
def control_plane() -> Iterator[tuple[Path, list[str]]]:
    """A kubeconfig and a kubectl of a control plane that lives as long as the block."""
    if missing := live.missing():
        raise SystemExit(f"cannot bring a control plane up: {missing}")
    provider = live.provider(f"bench-{os.getpid()}", owner=os.getpid())
    try:
        provider.up(full_version(DEFAULT_VERSION))
        fill(Api.from_kubeconfig(provider.kubeconfig), provider.kubectl([]))
        # the cluster's own is one large program of all components, and starts as slowly
        own = shutil.which("kubectl")
        yield provider.kubeconfig, [own] if own else provider.kubectl([])
    finally:
        provider.down()


GROUP: Final = {"groupVersion": "pacto.trianalab.io/v1alpha1", "version": "v1alpha1"}
RESOURCE: Final = {"name": "pactos", "singularName": "pacto", "namespaced": True, "kind": "Pacto"}


@contextmanager
def stand_in() -> Iterator[tuple[Path, list[str]]]:
    """The same of a server in this process; it has what kubectl asks for before it lists."""
    own = shutil.which("kubectl")
    if own is None:
        raise SystemExit("not on PATH: kubectl")
    api = fill_scene(FleetApi())
    for number in range(PACTOS):
        api.add(pacto(NAMESPACE, f"service-{number}", "Compliant"))
    groups = [{"name": "pacto.trianalab.io", "versions": [GROUP], "preferredVersion": GROUP}]
    resources = [{**RESOURCE, "verbs": ["get", "list", "watch"]}]
    version = GROUP["groupVersion"]
    api.put("/api", {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    api.put("/api/v1", {"kind": "APIResourceList", "groupVersion": "v1", "resources": []})
    api.put("/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    api.put(f"/apis/{version}", {"kind": "APIResourceList", "groupVersion": version, "resources": resources})
    with serve_fleet(api) as url, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config")
        cluster = {"name": "a", "cluster": {"server": url}}
        context = {"name": "a", "context": {"cluster": "a"}}
        content = {"clusters": [cluster], "contexts": [context], "current-context": "a"}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}))
        yield path, [own]


def install(folder: Path) -> tuple[str, str]:
    """The plugin in an environment of its own: its program and the Python that it runs on."""
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    programs = folder / "venv" / "bin"
    quiet = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    environment = {**os.environ, "PACTO_PURE": "1"}
    subprocess.run([programs / "python", *quiet, str(REPOSITORY)], check=True, env=environment)
    return str(programs / "kubectl-pacto"), str(programs / "python")


def main() -> int:
    """Measure and print; the goals are said, and missing one is no failure."""
    where = stand_in() if sys.argv[1:] == ["--stand-in"] else control_plane()
    with where as (kubeconfig, kubectl), tempfile.TemporaryDirectory() as home:
        plugin, python = install(Path(home))
        # kubectl keeps what it learnt of the server there: all runs but the first find it
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": home}
        taken = measure(
            {
                "python -c pass": [python, "-c", "pass"],
                "kubectl version --client": [*kubectl, "version", "--client"],
                "kubectl get pactos": [*kubectl, "get", "pactos", "-n", NAMESPACE],
                "kubectl pacto --version": [plugin, "--version"],
                "kubectl pacto status": [plugin, "status", "-n", NAMESPACE],
            },
            environment,
        )
        asked = server_time(kubeconfig)
    for name, one in taken.items():
        print(f"{name:26} {one}")
    version, status = taken["kubectl pacto --version"].typical, taken["kubectl pacto status"].typical
    ratio = status / taken["kubectl get pactos"].typical
    print(f"the server's own time for what status asks ({len(REQUESTS)} requests): {asked * 1e3:.1f} ms")
    print(f"--version: {version * 1e3:.0f} ms, goal {VERSION_GOAL * 1e3:.0f} ms")
    print(f"status beyond the server: {(status - asked) * 1e3:.0f} ms, goal {STATUS_GOAL * 1e3:.0f} ms")
    print(f"status takes {ratio:.2f} times kubectl get pactos ({PACTOS} Pactos)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
