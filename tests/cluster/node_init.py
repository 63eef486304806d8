# SPDX-License-Identifier: MIT
"""The first process of a node: its mounts, its daemons, and the end of every orphan.

Started by node.py in new pid, mount, cgroup and uts namespaces and the node's network namespace.
It ends when a daemon ends for good, so that the node never looks alive without one; with it, as the first
process of the pid namespace, end all others.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from tests.cluster import cgroups
from tests.cluster.layout import Cluster, Node
from tests.cluster.node_config import INSIDE, SOCKET
from tests.cluster.process import wait_until

READY_SECONDS: Final = 120
RESTARTS: Final = 10
RESTART_PAUSE: Final = 0.5


def mount(*arguments: str) -> None:
    """Mount, or end with mount's own words in the node's log."""
    subprocess.run(["mount", *arguments], check=True)


def mounts(state: Path, seen: list[cgroups.Hierarchy]) -> None:
    """The node's own view: its cgroups as roots, an empty /run, its state at /run/node."""
    mount("--make-rprivate", "/")
    subprocess.run(["umount", "-l", str(cgroups.ROOT)], check=True)
    if any(hierarchy.path == cgroups.ROOT for hierarchy in seen):
        mount("-t", "cgroup2", "cgroup2", str(cgroups.ROOT))
        leave_root()
    else:
        mount("-t", "tmpfs", "cgroup", str(cgroups.ROOT))
        for hierarchy in seen:
            hierarchy.path.mkdir()
            options = () if hierarchy.unified else ("-o", hierarchy.options)
            mount("-t", hierarchy.kind, *options, "cgroup", str(hierarchy.path))
    mount("-t", "tmpfs", "-o", "mode=755", "run", "/run")
    INSIDE.mkdir()
    mount("--bind", str(state), str(INSIDE))


def leave_root() -> None:
    """Pure v2: a group with processes of its own may not delegate, so they move into a leaf."""
    leaf = cgroups.ROOT / "init.scope"
    leaf.mkdir(exist_ok=True)
    for pid in (cgroups.ROOT / "cgroup.procs").read_text().split():
        (leaf / "cgroup.procs").write_text(pid)
    cgroups.delegate(cgroups.ROOT)


def daemon(node: Node, name: str, *command: str) -> int:
    """Start one of the node's daemons with its own log; its pid."""
    with node.cluster.log(f"{node.name}-{name}").open("ab") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    child.returncode = 0  # reaped by wait_for_any
    return child.pid


def containerd_answers() -> bool:
    """Whether containerd accepts connections."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(SOCKET)
        except OSError:
            return False
    return True


def kubelet(node: Node, program: str) -> list[str]:
    """The kubelet's command."""
    return [
        program,
        "kubelet",
        f"--config={INSIDE}/kubelet.yaml",
        f"--kubeconfig={node.cluster.pki}/{node.name}.kubeconfig",
        f"--root-dir={INSIDE}/kubelet",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]


def import_image(archive: Path) -> None:
    """Import one image archive; called here for the sandbox image, which the kubelet needs first."""
    command = ["ctr", "-a", SOCKET, "-n", "k8s.io", "images", "import", "--digests", str(archive)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def wait_for_any(daemons: dict[int, str], starters: dict[str, Callable[[], int]]) -> NoReturn:
    """Reap orphans until one of the daemons ends for good.

    kube-proxy ends itself when it sees its node change and counts on being started again, as its
    DaemonSet does, and so does a kubelet, by its service manager; one that cannot run uses its starts up
    and ends the node like containerd.
    """
    starts = dict.fromkeys(starters, RESTARTS)
    while True:
        pid, status = os.wait()
        if pid not in daemons:
            continue
        name, code = daemons.pop(pid), os.waitstatus_to_exitcode(status)
        if not starts.get(name):
            sys.exit(f"{name} ended with status {code}")
        starts[name] -= 1
        time.sleep(RESTART_PAUSE)
        daemons[starters[name]()] = name


def main(cluster: str, name: str) -> None:
    """Become the node."""
    node = Node(Cluster(cluster), name)
    program = (node.cluster.state / "program").read_text()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.umask(0o022)
    socket.sethostname(name)
    mounts(node.state, cgroups.hierarchies())
    daemons = {daemon(node, "containerd", "containerd", "-c", f"{INSIDE}/containerd.toml"): "containerd"}
    if not wait_until(containerd_answers, READY_SECONDS):
        sys.exit("containerd does not answer")
    import_image(node.cluster.state / "pause.tar")
    (INSIDE / "booted").touch()
    proxy = (program, "kube-proxy", f"--config={INSIDE}/proxy.yaml")
    starters: dict[str, Callable[[], int]] = {
        "kubelet": lambda: daemon(node, "kubelet", *kubelet(node, program)),
        "proxy": lambda: daemon(node, "proxy", *proxy),
    }
    daemons |= {start(): name for name, start in starters.items()}
    wait_for_any(daemons, starters)


if __name__ == "__main__":
    main(*sys.argv[1:])
