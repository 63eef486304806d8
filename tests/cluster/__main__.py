# SPDX-License-Identifier: MIT
"""The command: python -m tests.cluster."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.cluster import build, cluster, deps
from tests.cluster.layout import DEFAULT_VERSION, VERSIONS, Cluster, ClusterError, full_version, valid_name


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    top.add_argument(
        "--name",
        default=os.environ.get("PACTO_CLUSTER", "local"),
        help="which cluster (PACTO_CLUSTER, else local)",
    )
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    for name, text in (("build", "compile the Kubernetes programs"), ("up", "bring the control plane up")):
        command(name, text).add_argument(
            "--kubernetes", default=DEFAULT_VERSION, help=f"version, of: {', '.join(VERSIONS)}"
        )
    command("e2e-up", "everything that tests start from, by the provider that CLUSTER names")
    command("e2e-down", "take that down again")
    node = command("node", "add a node and wait until it is Ready")
    node.add_argument("node")
    node.add_argument("--remove", action="store_true", help="end it instead")
    command("load", "import an image archive into every node").add_argument("archive", type=Path)
    command("kubectl", "kubectl as admin").add_argument("arguments", nargs=argparse.REMAINDER)
    run = command("exec", "run a command beside the API server, or in a node")
    run.add_argument("--node", default="", help="in this node")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    command("status", "what runs; exit status 1 when something does not")
    command("down", "end everything and leave nothing")
    command("deps", "install missing Debian packages").add_argument(
        "groups", nargs="*", help=", ".join(deps.GROUPS)
    )
    command("module", "write the Go module of a version anew").add_argument("version")
    return top


def run(arguments: argparse.Namespace) -> int:
    """Carry a command out; its exit status."""
    target = Cluster(valid_name(arguments.name, "cluster"))
    words = getattr(arguments, "arguments", [])
    words = words[1:] if words[:1] == ["--"] else words
    match arguments.command:
        case "build":
            print(build.build(full_version(arguments.kubernetes)))
        case "up":
            cluster.up(target, full_version(arguments.kubernetes))
        case "e2e-up" | "e2e-down" as step:
            end_to_end(step, target.name)
        case "node":
            change = cluster.remove_node if arguments.remove else cluster.add_node
            change(target, valid_name(arguments.node, "node"))
        case "load":
            cluster.load(target, arguments.archive)
        case "kubectl":
            return subprocess.run(cluster.kubectl(target, words), check=False).returncode
        case "exec":
            return subprocess.run(cluster.exec_command(target, arguments.node, words), check=False).returncode
        case "status":
            return show_status(target)
        case "down":
            cluster.down(target)
        case "deps":
            groups = arguments.groups or list(deps.GROUPS)
            print(f"installed: {', '.join(deps.install(*groups)) or 'nothing, all is here'}")
        case "module":
            print(build.write_module(arguments.version))
        case other:
            raise AssertionError(other)
    return 0


def end_to_end(step: str, name: str) -> None:
    """The cluster that acceptance tests use, from kind or from here."""
    from tests.cluster import live
    from tests.images import runtime, workloads

    provider = live.provider(name)
    if step == "e2e-down":
        provider.down()
        return
    provider.up(full_version(os.environ.get("PACTO_KUBERNETES", DEFAULT_VERSION)))
    provider.add_nodes(live.NODES)
    for archive in (workloads.small_archive(), runtime.archive()):
        provider.load(archive)
    print(f"KUBECONFIG={provider.kubeconfig}")


def show_status(target: Cluster) -> int:
    """One line per component, and where the admin's kubeconfig is."""
    rows = cluster.status(target)
    for name, text in rows:
        print(f"{name:24} {text}")
    if target.kubeconfig.exists():
        print(f"{'kubeconfig':24} {target.kubeconfig}")
    return 0 if rows and all(text in ("running", "Ready") for _, text in rows) else 1


def main() -> int:
    """Errors of ours are one line and exit status 1."""
    try:
        return run(parser().parse_args())
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
