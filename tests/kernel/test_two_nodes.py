# SPDX-License-Identifier: MIT
"""Two nodes on one kernel, as kind makes them: each has an agent, and each keeps to its own pods.

A node is a cgroup namespace and a pid namespace here. Both agents' programs see every socket of the
kernel, also the other node's; nothing on their node names those.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.hosts import PATIENCE, Host
from tests.support.sources import ROOT, with_sources

# In the node's cgroup first: that makes it the root of the namespace.
UNSHARE = "unshare --cgroup --pid --fork --kill-child --mount-proc"
ENTER = f'echo $$ > "$1/cgroup.procs" && shift && exec {UNSHARE} "$@"'
# What is there first: the same file system is not mounted twice at one place.
MOUNT = 'umount --lazy /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
LISTENERS = {"early": ["0.0.0.0 7070"], "late": ["0.0.0.0 8080", "127.0.0.1 9090", "::1 8443"], "silent": []}
PEERS = {(9, 0, 3), (8080, 7, 0), (8443, 5, 0)}  # of the late pod: port, succeeded, failed


@contextmanager
def node(host: Host, name: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The scripted traffic and its agent as a node of its own; its object is `folder`/`name`.json."""
    options = ["--meet", str(folder), "--keep", str(folder / f"{name}.json")]
    script = [sys.executable, "-m", "tests.kernels.scenario", *options]
    process = subprocess.Popen(
        ["sh", "-c", ENTER, "sh", str(host.group(name)), "sh", "-c", MOUNT, "sh", *script],
        cwd=ROOT,
        env=with_sources(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)


def published(folder: Path, name: str) -> dict[str, Any]:
    """The last object of a node's agent."""
    items: list[dict[str, Any]] = json.loads((folder / f"{name}.json").read_text())["items"]
    return next(item for item in items if item["kind"] == "NodeRuntimeObservation")


def test_each_of_two_agents_on_one_kernel_tells_its_own_nodes_pods_alone(host: Host, tmp_path: Path) -> None:
    names = ("one", "other")
    with ExitStack() as stack:
        for process in [stack.enter_context(node(host, name, tmp_path)) for name in names]:
            out, said = process.communicate(timeout=20 * PATIENCE)
            assert process.returncode == 0, said
            told = json.loads(out)
            assert told["state"] == "Running"
            assert all(pod["complete"] for pod in told["pods"].values())
            assert {name: pod["listeners"] for name, pod in told["pods"].items()} == LISTENERS
            peers = {name: pod["peers"] for name, pod in told["pods"].items() if pod["peers"]}
            assert list(peers) == ["late"]
            assert {(one["port"], one["succeeded"], one["failed"]) for one in peers["late"]} == PEERS
    one, other = (published(tmp_path, name) for name in names)
    pods = [{pod["uid"] for pod in view["pods"]} for view in (one, other)]
    assert [len(uids) for uids in pods] == [3, 3]
    assert not pods[0] & pods[1]
    for view in (one, other):
        assert view["collection"]["unattributedEvents"] > 0, "the other node's sockets were seen"
