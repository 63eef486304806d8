# SPDX-License-Identifier: MIT
"""The process that memory.py measures: `pacto agent` as its DaemonSet runs it, on a node at its bounds."""

from __future__ import annotations

import functools
import json
import site  # noqa: F401 - as every Python has it; this one was started without what is installed beside it
import sys
from typing import TYPE_CHECKING, Final

from kubectl_pacto import launcher

if TYPE_CHECKING:
    from pacto_agent.agent import Agent

ROUNDS: Final = 5
RECORDS: Final = 20_000


def resident_kib() -> dict[str, int]:
    """This process's memory now and at its peak."""
    status = _lines("/proc/self/status")
    words = {line.partition(":")[0]: line.split()[1] for line in status if line.startswith("Vm")}
    anonymous = next(line for line in _lines("/proc/self/smaps_rollup") if line.startswith("Anonymous:"))
    return {"now": int(words["VmRSS"]), "peak": int(words["VmHWM"]), "own": int(anonymous.split()[1])}


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not the agent's
        return file.readlines()


def live(agent: Agent, listeners: int) -> None:
    """In place of the agent's own life: resyncs and publishes of a full node; print what that needed."""
    from pacto_native.ring import FlowReader
    from tests.bench.node import FullMapper, records

    agent._mapper.close()
    agent._mapper = FullMapper(listeners)
    reader = agent._tracer._reader if agent._tracer else FlowReader()
    for _ in range(ROUNDS):
        agent._resync()
        for record in records(RECORDS):
            reader.feed(record)
        agent._collect()
        agent._publish()
        assert not agent._publisher.problem, agent._publisher.problem
    held = resident_kib() | {"loaded": int(agent._tracer is not None), "modules": len(sys.modules)}
    written = agent._sink.load()
    assert written is not None
    held["pods"] = len(written["pods"])
    held["peers"] = sum(len(pod["peers"]) for pod in written["pods"])
    held["listeners"] = sum(len(pod["listeners"]) for pod in written["pods"])
    held["bytes"] = len(json.dumps(written, separators=(",", ":")))
    print(json.dumps(held))


def main(listeners: int, account: str, arguments: list[str]) -> int:
    """Be the agent that these arguments ask for; `account`: where its pod's token and authority are."""
    if "kubernetes" in arguments:
        from kubectl_pacto.kube import credentials

        credentials.in_cluster = functools.partial(credentials.in_cluster, account=account)
    from pacto_agent.agent import Agent

    Agent.run = lambda agent: live(agent, listeners)  # type: ignore[method-assign, assignment]
    return launcher.main(["agent", *arguments])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
