# SPDX-License-Identifier: MIT
"""`pacto agent`: options, signals, and the agent's life between them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from pacto_agent.config import Options, parse
from pacto_agent.publish import Sink


def make_sink(options: Options) -> Sink:
    """The sink that the options name; only its module is imported."""
    if options.sink == "file":
        from pacto_agent.sinks.file import FileSink

        return FileSink(options.output)
    if options.sink == "kubernetes":
        return _kubernetes_sink(options)
    from pacto_agent.sinks.stdout import StdoutSink

    return StdoutSink(sys.stdout)


def _kubernetes_sink(options: Options) -> Sink:
    from kubectl_pacto import __version__
    from kubectl_pacto.kube.client import Client
    from kubectl_pacto.kube.credentials import in_cluster
    from kubectl_pacto.kube.retry import RetryPolicy
    from kubectl_pacto.kube.transport import HttpTransport
    from pacto_agent.sinks.kubernetes import KubernetesSink

    server, tokens = in_cluster()
    # All attempts of one request end well within a publish interval: the next one tries again.
    timeout = min(10.0, options.publish_interval / 3)
    retries = RetryPolicy(attempts=3, longest_delay=timeout / 2)
    client = Client(
        HttpTransport(server, timeout), tokens, agent=f"pacto-agent/{__version__}", retries=retries
    )
    return KubernetesSink(
        client, namespace=options.namespace, name=options.node_name, interval=options.publish_interval
    )


def main(argv: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT; returns 0."""
    options = parse(argv)
    from pacto_agent.agent import Agent

    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    agent = Agent(options, make_sink(options), stop)
    try:
        agent.open()
        agent.run()
    finally:
        agent.close()
    return 0
