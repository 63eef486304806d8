# SPDX-License-Identifier: MIT
"""`pacto agent` and its commands: options, signals, and the agent's life between them."""

from __future__ import annotations

import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from kubectl_pacto.errors import UsageError
from kubectl_pacto.stopping import set_when_told
from pacto_agent.config import Options, parse, parse_inspect, parse_top
from pacto_agent.publish import Sink

UNASKED: Final = (
    "watching this node's TCP sockets, told as JSON on standard output, until Ctrl-C; --sink kubernetes and"
    " --sink file --output PATH publish them, `pacto agent top` shows them live"
)


def make_sink(options: Options, pause: Callable[[float], object] = time.sleep) -> Sink:
    """The sink that the options name; only its module is imported. `pause` waits between attempts."""
    if options.sink == "file":
        from pacto_agent.sinks.file import FileSink

        return FileSink(options.output)
    if options.sink == "kubernetes":
        return _kubernetes_sink(options, pause)
    from pacto_agent.sinks.stdout import StdoutSink

    return StdoutSink(_standard_output())


def _standard_output() -> TextIO:
    if sys.stdout is None:
        raise UsageError("standard output is closed, and nothing else would be told what is seen")
    return sys.stdout


def _kubernetes_sink(options: Options, pause: Callable[[float], object]) -> Sink:
    from kubectl_pacto import __version__
    from kubectl_pacto.kube.client import Client, Waiting
    from kubectl_pacto.kube.credentials import in_cluster
    from kubectl_pacto.kube.retry import RetryPolicy
    from kubectl_pacto.kube.transport import HttpTransport
    from pacto_agent.sinks.kubernetes import KubernetesSink

    server, tokens = in_cluster()
    # All attempts of one request end well within a publish interval: the next one tries again.
    timeout = min(10.0, options.publish_interval / 3)
    retries = RetryPolicy(attempts=3, longest_delay=timeout / 2)
    client = Client(
        HttpTransport(server, timeout),
        tokens,
        agent=f"pacto-agent/{__version__}",
        retries=retries,
        waiting=Waiting(sleep=pause),
    )
    return KubernetesSink(
        client, namespace=options.namespace, name=options.node_name, interval=options.publish_interval
    )


def main(argv: Sequence[str]) -> int:
    """`pacto agent`, `pacto agent inspect` or `pacto agent top`; returns the exit status."""
    match list(argv):
        case ["inspect", *rest]:
            return inspect(rest)
        case ["top", *rest]:
            return top(rest)
        case [*given]:
            options = parse(given)
            if not given:
                print(f"pacto agent: {UNASKED}", file=sys.stderr, flush=True)
            return run(options)


def run(options: Options, sink: Sink | None = None) -> int:
    """Run until SIGTERM or SIGINT, then close everything in reverse order; returns 0.

    Raises BrokenPipeError once nobody reads standard output any more, if that is what the sink writes to.
    """
    from pacto_agent.agent import Agent

    stop, gone = threading.Event(), threading.Event()

    def on_gone() -> None:
        gone.set()
        stop.set()

    set_when_told(stop)
    agent = Agent(options, sink or make_sink(options, stop.wait), stop)
    if options.sink == "stdout":
        _watch_reader(sys.stdout, on_gone)
    try:
        agent.open()
        agent.run()
    finally:
        agent.close()
    if gone.is_set():
        raise BrokenPipeError
    return 0


def _watch_reader(stream: TextIO, tell: Callable[[], object]) -> None:
    """Call `tell` as soon as nobody reads `stream`: the next write may be a publish interval away."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)  # errors and hang-ups alone, which a file never has

    def wait() -> None:
        poll.poll()
        tell()

    threading.Thread(target=wait, name="standard output", daemon=True).start()


def inspect(argv: Sequence[str]) -> int:
    """Say what will work here; returns 1 when something will not."""
    from pacto_agent.inspect_node import ERROR, inspect_node, render

    options, output = parse_inspect(argv)
    checks = inspect_node(options)
    print(render(checks, as_json=output == "json"))
    return 1 if any(check.result == ERROR for check in checks) else 0


def top(argv: Sequence[str]) -> int:
    """Show this node's pods live until interrupted; nothing is published."""
    from pacto_agent.sinks.top import TopSink

    return run(parse_top(argv), TopSink(_standard_output()))
