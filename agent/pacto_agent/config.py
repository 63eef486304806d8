# SPDX-License-Identifier: MIT
"""The options of `pacto agent`, with their bounds."""

from __future__ import annotations

import argparse
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from kubectl_pacto.arguments import Parser
from kubectl_pacto.errors import UsageError
from kubectl_pacto.model import bounds
from kubectl_pacto.model.duration import parse_interval
from kubectl_pacto.model.node import AGENT_NAMESPACE
from pacto_agent.mapper import NAMES

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # RFC 1123, as the API server has it


@dataclass(frozen=True, slots=True)
class Options:
    """One agent's options; intervals in seconds."""

    node_name: str
    namespace: str = AGENT_NAMESPACE
    sink: str = "stdout"
    output: str = ""
    publish_interval: float = bounds.PUBLISH_INTERVAL_SECONDS
    resync_interval: float = bounds.RESYNC_INTERVAL_SECONDS
    proc: str = "/proc"
    cgroup_root: str = "/sys/fs/cgroup"
    btf: str = "/sys/kernel/btf/vmlinux"
    pod_uid: str = ""
    mapper: str = "auto"


def interval(text: str) -> float:
    """An interval's seconds; raises ArgumentTypeError naming the bound."""
    try:
        return parse_interval(text, bounds.SHORTEST_TRIED_INTERVAL_SECONDS)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parser() -> Parser:
    """The command line of the agent itself; each default is the specification's."""
    result = Parser(
        "pacto agent",
        "Watch this node's TCP sockets and publish them per pod, until SIGTERM.",
        "Other commands: `pacto agent inspect` says what will work on this node and why not; "
        "`pacto agent top` shows its pods' listeners and peers live.",
    )
    add = result.add_argument
    sinks = ("kubernetes", "file", "stdout")
    add("--sink", choices=sinks, default="stdout", help="where the view goes (default stdout)")
    add("--output", metavar="PATH", default="", help="the file of --sink file")
    _add_interval(result, "--publish-interval", bounds.PUBLISH_INTERVAL_SECONDS)
    _add_host(result)
    return result


def inspect_parser() -> Parser:
    """The command line of `pacto agent inspect`."""
    result = Parser("pacto agent inspect", "Say what will work on this node, and why not.")
    result.add_argument("-o", dest="output", choices=("table", "json"), default="table")
    _add_host(result)
    return result


def top_parser() -> Parser:
    """The command line of `pacto agent top`."""
    result = Parser("pacto agent top", "Show the listeners and peers of this node's pods live.")
    _add_interval(result, "--interval", 2.0)
    _add_host(result)
    return result


def _add_interval(to: Parser, flag: str, default: float) -> None:
    name = flag.removeprefix("--").replace("-", "_")
    dest = "publish_interval" if name == "interval" else name
    longest = f"{bounds.LONGEST_INTERVAL_SECONDS / 3600:g}h"
    words = f"{bounds.SHORTEST_INTERVAL_SECONDS:g}s to {longest}, default {default:g}s"
    tried = f"to try it, {bounds.SHORTEST_TRIED_INTERVAL_SECONDS:g}s or more"
    to.add_argument(
        flag, dest=dest, type=interval, default=default, metavar="DURATION", help=f"{words}; {tried}"
    )


def _add_host(to: Parser) -> None:
    node, namespace = os.environ.get("NODE_NAME"), os.environ.get("POD_NAMESPACE")
    add = to.add_argument
    add("--node-name", default=node or socket.gethostname(), help="default $NODE_NAME, else the host's name")
    add("--namespace", default=namespace or AGENT_NAMESPACE, help="of the published object")
    _add_interval(to, "--resync-interval", bounds.RESYNC_INTERVAL_SECONDS)
    add("--mapper", choices=NAMES, default="auto", help="how sockets are matched to pods (default auto)")
    add("--proc", default="/proc", metavar="PATH", help="the host's /proc")
    add("--cgroup-root", default="/sys/fs/cgroup", metavar="PATH", help="the host's cgroups")
    add("--btf", default="/sys/kernel/btf/vmlinux", metavar="PATH", help=argparse.SUPPRESS)
    add(
        "--pod-uid",
        default=os.environ.get("POD_UID", ""),
        metavar="UID",
        help="this agent's own pod ($POD_UID)",
    )


def parse(argv: Sequence[str]) -> Options:
    """Options of `argv`; raises UsageError for what argparse cannot see, and exits 2 for the rest."""
    values = parser().parse_args(argv)
    if values.sink == "file" and not values.output:
        raise UsageError("--sink file needs --output PATH")
    if values.output and values.sink != "file":
        raise UsageError("--output needs --sink file")
    return _usable(Options(**vars(values)))


def _usable(options: Options) -> Options:
    """The same options; raises UsageError for names and places that no agent could work with."""
    if not options.node_name:
        raise UsageError("--node-name is empty and so are $NODE_NAME and the host's name")
    if not _LABEL.fullmatch(options.namespace):
        problem = "is empty" if not options.namespace else f"{options.namespace!r} is no namespace's name"
        raise UsageError(f"--namespace {problem}: leave it out for {AGENT_NAMESPACE}")
    for flag, path, usual in (
        ("--proc", options.proc, "/proc"),
        ("--cgroup-root", options.cgroup_root, "/sys/fs/cgroup"),
    ):
        if not os.path.isdir(path):
            raise UsageError(f"{flag} {path!r} is no directory: give where the host's {usual} is")
    return options


def parse_inspect(argv: Sequence[str]) -> tuple[Options, str]:
    """Options and the output format of `pacto agent inspect`."""
    values = vars(inspect_parser().parse_args(argv))
    output = values.pop("output")
    return Options(**values), output


def parse_top(argv: Sequence[str]) -> Options:
    """Options of `pacto agent top`."""
    return _usable(Options(**vars(top_parser().parse_args(argv))))
