# SPDX-License-Identifier: MIT
"""etcd, API server, controllers and scheduler, in the control plane's network namespace."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from tests.cluster import build, netns, pki, process
from tests.cluster.api import Api, ApiError
from tests.cluster.layout import (
    API_PORT,
    CONTROL_PLANE_ADDRESS,
    PODS,
    REPOSITORY,
    SERVICES,
    Cluster,
    ClusterError,
)

COMPONENTS: Final = ("etcd", "apiserver", "gateway", "controller-manager", "scheduler")
READY_SECONDS: Final = 240  # of a machine that does other things, too


def etcd(cluster: Cluster) -> list[str]:
    """No fsync: the state is thrown away with the cluster."""
    return ["etcd", "--data-dir", str(cluster.state / "etcd"), "--unsafe-no-fsync", "--log-level=warn"]


def apiserver(cluster: Cluster, program: Path) -> list[str]:
    """RBAC, node authorisation and every default admission plugin, as a real cluster has them.

    And the one that OpenShift adds, which asks who blocks a deletion for a right of its own.
    """
    pki_dir = cluster.pki
    options = {
        "etcd-servers": "http://127.0.0.1:2379",
        "advertise-address": CONTROL_PLANE_ADDRESS,
        "secure-port": str(API_PORT),
        "service-cluster-ip-range": SERVICES,
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction,OwnerReferencesPermissionEnforcement",
        "client-ca-file": f"{pki_dir}/ca.crt",
        "tls-cert-file": f"{pki_dir}/apiserver.crt",
        "tls-private-key-file": f"{pki_dir}/apiserver.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": f"{pki_dir}/sa.pub",
        "service-account-signing-key-file": f"{pki_dir}/sa.key",
        "kubelet-client-certificate": f"{pki_dir}/kubelet-client.crt",
        "kubelet-client-key": f"{pki_dir}/kubelet-client.key",
        # node names resolve nowhere: there is no DNS
        "kubelet-preferred-address-types": "InternalIP",
    }
    return [str(program), "kube-apiserver", *(f"--{key}={value}" for key, value in options.items())]


def client(cluster: Cluster, program: Path, name: str, *more: str) -> list[str]:
    """A controller program: one kubeconfig for everything, no election."""
    kubeconfig = cluster.pki / f"{name}.kubeconfig"
    credentials = [f"--{kind}kubeconfig={kubeconfig}" for kind in ("", "authentication-", "authorization-")]
    return [
        str(program),
        f"kube-{name}",
        *credentials,
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        *more,
    ]


def commands(cluster: Cluster, program: Path) -> dict[str, list[str]]:
    """Every component's command, in starting order."""
    pki_dir = cluster.pki
    return {
        "etcd": etcd(cluster),
        "apiserver": apiserver(cluster, program),
        "controller-manager": client(
            cluster,
            program,
            "controller-manager",
            f"--service-account-private-key-file={pki_dir}/sa.key",
            f"--root-ca-file={pki_dir}/ca.crt",
            "--use-service-account-credentials",
            f"--cluster-cidr={PODS}",
            "--allocate-node-cidrs=false",
            # a node that is gone is noticed while a test still watches
            "--node-monitor-grace-period=20s",
        ),
        "scheduler": client(cluster, program, "scheduler"),
    }


def start_gateway(cluster: Cluster) -> None:
    """The loopback gateway, and the admin's kubeconfig that goes through it."""
    port_file = cluster.state / "port"
    namespace = netns.NAMESPACES / cluster.netns
    arguments = [str(namespace), CONTROL_PLANE_ADDRESS, str(API_PORT), str(port_file)]
    process.start(
        cluster, "gateway", None, [sys.executable, "-m", "tests.cluster.gateway", *arguments], REPOSITORY
    )
    process.wait_until(lambda: port_file.exists() or not process.running(cluster, "gateway"), 60)
    process.check(cluster, "gateway")
    server = f"https://127.0.0.1:{port_file.read_text()}"
    cluster.kubeconfig.write_text(pki.kubeconfig(cluster, "admin", server))


def wait_ready(cluster: Cluster) -> None:
    """Until the API server says it is ready; a component that ends meanwhile is reported at once."""
    api = Api.from_kubeconfig(cluster.kubeconfig)
    api.timeout = 2  # a server whose store is broken accepts and does not answer
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            api.raw("GET", "/readyz")
            return
        except (OSError, ApiError) as error:
            for component in ("etcd", "apiserver"):
                process.check(cluster, component)
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the API server is not ready: {error}{process.tail(cluster.log('apiserver'))}"
                ) from error
            time.sleep(process.POLL_SECONDS)


def up(cluster: Cluster, version: str) -> None:
    """Bring the control plane up; what runs already is left alone."""
    chosen = cluster.state / "version"
    if chosen.exists() and chosen.read_text() != version:
        raise ClusterError(f"cluster {cluster.name} runs Kubernetes {chosen.read_text()}: take it down first")
    program = build.build(version)
    chosen.write_text(version)
    (cluster.state / "program").write_text(str(program))
    netns.control_plane(cluster)
    pki.certificates(cluster)
    starting = commands(cluster, program)
    for component in ("etcd", "apiserver"):
        process.start(cluster, component, cluster.netns, starting.pop(component))
    start_gateway(cluster)
    wait_ready(cluster)
    for component, command in starting.items():
        process.start(cluster, component, cluster.netns, command)
        process.check(cluster, component)


def down(cluster: Cluster) -> None:
    """End the control plane, last started first; its state goes too, so nothing has to be flushed."""
    for component in reversed(COMPONENTS):
        if found := process.running(cluster, component):
            found.kill()
