# SPDX-License-Identifier: MIT
"""The process that memory.py measures: the agent's own imports and nothing more, but a full node."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING

from pacto_agent.agent import Agent
from pacto_agent.config import parse
from pacto_agent.objectfile import forget_parser
from pacto_agent.run import make_sink
from pacto_native.ring import FlowReader
from tests.bench.node import FullMapper, records

if TYPE_CHECKING:
    from pacto_agent.sinks.kubernetes import KubernetesSink

ROUNDS = 5


def resident_kib() -> dict[str, int]:
    """This process's memory now and at its peak."""
    status = _lines("/proc/self/status")
    words = {line.partition(":")[0]: line.split()[1] for line in status if line.startswith("Vm")}
    return {"now": int(words["VmRSS"]), "peak": int(words["VmHWM"])}


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not the agent's
        return file.readlines()


def kubernetes_sink(port: int, ca_file: str) -> KubernetesSink:
    """The agent's sink, as run.py makes it in a pod."""
    from kubectl_pacto.kube.client import Client
    from kubectl_pacto.kube.transport import HttpTransport, Server
    from pacto_agent.sinks.kubernetes import KubernetesSink

    client = Client(HttpTransport(Server("127.0.0.1", port, ca_file=ca_file), 10.0))
    return KubernetesSink(client, namespace="bench", name="bench", interval=30.0)


def main(output: str, listeners: int, port: int, ca_file: str) -> None:
    """Be the agent, with a file, or with an API where a port is given; print what it needed."""
    options = parse(["--sink", "file", "--output", output, "--node-name", "bench", "--mapper", "proc"])
    sink = kubernetes_sink(port, ca_file) if port else make_sink(options)
    agent = Agent(options, sink, threading.Event())
    agent.open()
    forget_parser()  # as run.py does
    agent._mapper = FullMapper(listeners)
    reader = agent._tracer._reader if agent._tracer else FlowReader()
    for _ in range(ROUNDS):
        agent._resync()
        for record in records(20_000):
            reader.feed(record)
        agent._collect()
        agent._publish()
        assert not agent._publisher.problem, agent._publisher.problem
    held = resident_kib() | {"loaded": int(agent._tracer is not None)}
    agent.close()
    written = sink.load()
    assert written is not None
    held["pods"] = len(written["pods"])
    held["peers"] = sum(len(pod["peers"]) for pod in written["pods"])
    held["listeners"] = sum(len(pod["listeners"]) for pod in written["pods"])
    held["bytes"] = len(json.dumps(written, separators=(",", ":")))
    print(json.dumps(held))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
