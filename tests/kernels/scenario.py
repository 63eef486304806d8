# SPDX-License-Identifier: MIT
"""Scripted traffic of three pods under a real agent; prints what the agent's object says of them.

Run on every kernel, in its emulator and on the machine itself, it must print the same; run twice at
once, as two nodes of one kernel (--meet), neither may tell of the other. It is a program of its own
because it runs where no test framework is.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.hosts import Host, Pod

PATIENCE: Final = 150.0  # an emulator on a machine that does other things, too
PUBLISH: Final = "500ms"
RESYNC: Final = "2s"
PASSES: Final = 5.0  # two resyncs, and a publish


def observation(output: Path) -> dict[str, Any]:
    """The node object that the agent wrote last; empty before the first."""
    try:
        items = json.loads(output.read_text())["items"]
    except (FileNotFoundError, ValueError):
        return {}
    return next((item for item in items if item["kind"] == "NodeRuntimeObservation"), {})


def of_pod(output: Path, pod: Pod) -> dict[str, Any]:
    """What the object says of one pod."""
    found = [entry for entry in observation(output).get("pods", []) if entry["uid"] == pod.uid]
    return found[0] if found else {}


def told(output: Path, pod: Pod) -> dict[str, Any]:
    """The part of it that does not depend on when."""
    entry = of_pod(output, pod)
    keys = ("address", "port", "succeeded", "failed", "aborted", "failureReason")
    peers = [{key: peer.get(key) for key in keys} for peer in entry.get("peers", [])]
    listeners = sorted(f"{one['address']} {one['port']}" for one in entry.get("listeners", []))
    return {
        "complete": entry.get("complete"),
        "reasons": entry.get("reasons"),
        "listeners": listeners,
        "peers": sorted(peers, key=lambda peer: (peer["address"], peer["port"])),
    }


def wait(condition: Callable[[], object], what: str) -> None:
    """Wait, or end with what did not come."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"not within {PATIENCE:g} s: {what}")
        time.sleep(0.1)


def ports(output: Path, pod: Pod) -> set[int]:
    """The ports a pod listens on."""
    return {one["port"] for one in of_pod(output, pod).get("listeners", [])}


def failures(output: Path, pod: Pod, port: int) -> int:
    """Failed connections of a pod to a port."""
    peers = of_pod(output, pod).get("peers", [])
    return sum(peer["failed"] for peer in peers if peer["port"] == port)


def meet(folder: Path | None, what: str) -> None:
    """Go on when both nodes are here; alone, at once. `folder` is theirs in common."""
    if folder is None:
        return
    (folder / f"{what}-{uuid.uuid4()}").touch()
    wait(lambda: len(list(folder.glob(f"{what}-*"))) == 2, f"the other node, {what}")


def traffic(host: Host, output: Path, early: Pod, folder: Path | None) -> dict[str, Any]:
    """Listen before and after the agent's baseline, close, connect, be refused; a pod that stays silent."""
    late, silent = host.pod(), host.pod()
    wait(lambda: of_pod(output, early).get("complete"), "the first pod's baseline")
    meet(folder, "watching")
    late.run("serve('0.0.0.0', 8080)")
    late.run("serve('::1', 8443)")
    closing = late.number("listen('127.0.0.1', 9090)")  # last: the servers' children inherit what is open
    wait(lambda: ports(output, late) == {8080, 8443, 9090}, "the second pod's listeners")
    late.run("connect_many('127.0.0.1', 8080, 7)")
    late.run("connect_many('::1', 8443, 5)")
    late.run("connect_many('127.0.0.1', 9, 3)")
    late.run(f"close({closing})")  # a change, which the counts ride along with
    wait(lambda: ports(output, late) == {8080, 8443}, "the end of a listener")
    wait(lambda: failures(output, late, 9) == 3, "three refusals")
    wait(lambda: of_pod(output, silent).get("complete"), "the silent pod's baseline")
    meet(folder, "done")
    if folder is not None:
        time.sleep(PASSES)  # what the other node did last is seen by now, and resynced
        late.run("listen('127.0.0.1', 9090)")  # counters of events ride along with a change
        wait(lambda: ports(output, late) == {8080, 8443, 9090}, "a last listener")
    return {name: told(output, pod) for name, pod in (("early", early), ("late", late), ("silent", silent))}


def main() -> None:
    """Run everything; one JSON object on the standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--meet", type=Path, metavar="DIR", help="two nodes wait for each other here")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="the agent's last object")
    options = parser.parse_args()
    observe(options.meet, options.keep)


def observe(folder: Path | None, keep: Path | None) -> None:
    """One node, from its first pod to its end."""
    host = Host()
    with tempfile.TemporaryDirectory() as name:
        output, errors = Path(name) / "node.json", Path(name) / "errors"
        early = host.pod()
        early.run("serve('0.0.0.0', 7070)")
        options = ["--sink", "file", "--output", str(output), "--node-name", "node"]
        pace = ["--publish-interval", PUBLISH, "--resync-interval", RESYNC]
        with errors.open("wb") as log:
            agent = subprocess.Popen([sys.executable, "-m", "pacto_agent", *options, *pace], stderr=log)
        try:
            pods = traffic(host, output, early, folder)
        except SystemExit:
            print(errors.read_text(), observation(output).get("collection"), file=sys.stderr)
            raise
        finally:
            agent.terminate()
            agent.wait()
            host.close()
        if keep is not None:
            shutil.copy(output, keep)
        print(json.dumps({"state": observation(output)["collection"]["state"], "pods": pods}, sort_keys=True))


if __name__ == "__main__":
    main()
