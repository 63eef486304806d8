# SPDX-License-Identifier: MIT
"""The files that containerd, CNI, the kubelet and kube-proxy of a node read.

Paths are those inside the node, where /run/node is the node's state: short enough for unix sockets
whatever the cache directory is called.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.cluster.layout import PODS, Node

INSIDE: Final = Path("/run/node")
SOCKET: Final = "/run/containerd/containerd.sock"
SANDBOX_IMAGE: Final = "localhost/pacto-pause:1"


def containerd() -> str:
    """No AppArmor, and no score below what a process without CAP_SYS_RESOURCE may set."""
    return f"""\
version = 2
root = "{INSIDE}/containerd"
state = "/run/containerd"
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{SANDBOX_IMAGE}"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{INSIDE}/cni"
"""


def cni(node: Node) -> str:
    """A bridge per node; routes between nodes are set outside."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": f"{INSIDE}/ipam",
            "ranges": [[{"subnet": node.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]})


def kubelet(node: Node) -> str:
    """A kubelet that also works without CAP_SYS_RESOURCE, on cgroup v1, and on a nearly full disk."""
    pki = node.cluster.pki
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{pki}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "enforceNodeAllocatable": [],
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "5s",
        "oomScoreAdj": 0,
        "podLogsDir": f"{INSIDE}/logs",
        "resolvConf": f"{INSIDE}/resolv.conf",
        "tlsCertFile": f"{pki}/{node.name}.crt",
        "tlsPrivateKeyFile": f"{pki}/{node.name}.key",
    }
    if not node.cluster.version.startswith("1.30."):
        config["failCgroupV1"] = False  # unknown to 1.30, where cgroup v1 is not in question yet
    return json.dumps(config, indent=1)


def proxy(node: Node) -> str:
    """kube-proxy; the zeros keep it from writing parameters that a namespace may not have."""
    conntrack = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": f"{node.cluster.pki}/proxy.kubeconfig"},
            "mode": "iptables",
            "clusterCIDR": PODS,
            "hostnameOverride": node.name,
            "conntrack": conntrack,
        },
        indent=1,
    )


def write(node: Node) -> None:
    """All of them, into the node's state."""
    (node.state / "cni").mkdir(parents=True, exist_ok=True)
    files = {
        "containerd.toml": containerd(),
        "cni/10-pods.conflist": cni(node),
        "kubelet.yaml": kubelet(node),
        "proxy.yaml": proxy(node),
        "resolv.conf": "",
    }
    for name, text in files.items():
        (node.state / name).write_text(text)
