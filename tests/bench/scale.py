# SPDX-License-Identifier: MIT
"""The operator at the size of a large fleet: `python -m tests.bench.scale [PACTOS NODES INTERVAL]`.

The real process against an API server on loopback, in a process of its own. Goals at 10,000 Pactos and
5,000 nodes: a pass within 60 s of one core, 512 MiB. The ratio is to decoding the same JSON alone.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kubectl_pacto.kube.lists import with_query
from kubectl_pacto.kube.transport import HttpTransport, Server
from tests.support.scale_objects import Shape

TICKS: Final = os.sysconf("SC_CLK_TCK")
LONGEST_SECONDS: Final = float(os.environ.get("PACTO_BENCH_SECONDS", "1500"))
READ: Final = ("/api/v1/pods", "/apis/pacto.trianalab.io/v1alpha1/noderuntimeobservations")
OPERATOR: Final = os.environ.get("PACTO_BENCH_OPERATOR") or (
    "import sys; from kubectl_pacto.controller.run import main; sys.exit(main())"
)


class Process:
    """A process's figures, from /proc."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> tuple[float, float]:
        """MiB resident now, and at the most."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = dict(line.split(":", 1) for line in text.splitlines())
        return tuple(int(found[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


@contextmanager
def fleet_server(shape: Shape, *clock: str) -> Iterator[int]:
    """The API server of a fleet, by the real clock or by one of its own; its port."""
    command = [sys.executable, "-m", "tests.support.scale_server", json.dumps(asdict(shape)), *clock]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(30)


@contextmanager
def operator(port: int, log: Path) -> Iterator[Process]:
    """`pacto operator` against that server."""
    config = {
        "current-context": "fleet",
        "contexts": [{"name": "fleet", "context": {"cluster": "fleet", "user": "fleet"}}],
        "clusters": [{"name": "fleet", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "fleet", "user": {}}],
    }
    with tempfile.TemporaryDirectory() as folder, log.open("w") as said:
        file = Path(folder) / "kubeconfig"
        file.write_text(json.dumps(config))
        command = [sys.executable, *os.environ.get("PACTO_BENCH_PYTHON", "").split(), "-c", OPERATOR]
        options = ["--kubeconfig", str(file), "--enable-node-agent"]
        quiet = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
        environment = {**os.environ, "POD_NAMESPACE": "pacto-operator-system", "POD_NAME": "bench"}
        process = subprocess.Popen([*command, *options, *quiet], env=environment, stderr=said)
        try:
            yield Process(process.pid)
        finally:
            process.terminate()
            process.wait(30)


def ask(port: int, what: str) -> dict[str, Any]:
    """A word with the server itself."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/_/{what}")
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found
    finally:
        connection.close()


def decoding(port: int) -> tuple[float, int]:
    """CPU seconds to decode the pods and the node objects as JSON, page by page, and their bytes."""
    transport = HttpTransport(Server("127.0.0.1", port, tls=False), 60)
    seconds, size = 0.0, 0
    for path in READ:
        token = ""
        while True:
            content = transport.exchange(
                "GET", with_query(path, limit=100, **{"continue": token}), None, {}
            ).body
            began = time.process_time()
            page = json.loads(content)
            seconds += time.process_time() - began
            size += len(content)
            token = page["metadata"].get("continue", "")
            if not token:
                break
    transport.close()
    return seconds, size


def wait_for(port: int, process: Process, least: int, count: int, patches: int = 0) -> dict[str, Any]:
    """Wait until every Pacto has been written so often, and all so often; the server's figures then."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        found = ask(port, "stats")
        if found["pacto"] >= count and found["least"] >= least and found["patches"] >= patches:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {LONGEST_SECONDS:.0f} s: {found}, {process.memory()}")
        time.sleep(0.5)


def told(before: dict[str, Any], after: dict[str, Any]) -> tuple[dict[str, int], int]:
    """The requests and the bytes between two looks."""
    requests = {
        name: count - before["requests"].get(name, 0)
        for name, count in after["requests"].items()
        if count > before["requests"].get(name, 0)
    }
    return requests, sum(after["bytes"].values()) - sum(before["bytes"].values())


def report(name: str, spent: tuple[float, float], shape: Shape, requests: dict[str, int], size: int) -> None:
    """One pass in words: `spent` is CPU and wall clock."""
    cpu, wall = spent
    print(
        f"{name}: {cpu:.1f} s of one core in {wall:.0f} s, {1000 * cpu / shape.pactos:.2f} ms a Pacto; "
        f"{sum(requests.values())} requests ({sum(requests.values()) / wall:.1f}/s), {size / 1e6:.0f} MB"
    )
    busiest = sorted(requests.items(), key=lambda item: -item[1])[:9]
    print("  " + ", ".join(f"{what} {count}" for what, count in busiest))


def measure(shape: Shape, log: Path) -> bool:
    """One run; whether both goals were met and all was judged."""
    with fleet_server(shape) as port:
        baseline, size = decoding(port)
        print(f"pods and node objects: {size / 1e6:.0f} MB of JSON, decoded alone in {baseline:.1f} s")
        start, began = ask(port, "stats"), time.monotonic()
        with operator(port, log) as process:
            first = wait_for(port, process, 1, shape.pactos)
            spent = process.cpu(), time.monotonic() - began
            report("first pass", spent, shape, *told(start, first))
            print(f"  {spent[0] / baseline:.1f} times decoding alone; {process.memory()[0]:.0f} MiB")
            # settled when each has been written twice; from there as many checks as there are Pactos
            second = wait_for(port, process, 2, shape.pactos)
            cpu, began = process.cpu(), time.monotonic()
            third = wait_for(port, process, 2, shape.pactos, second["patches"] + shape.pactos)
            steady = process.cpu() - cpu, time.monotonic() - began
            report("steady pass", steady, shape, *told(second, third))
            print(f"  {steady[0] / baseline:.1f} times decoding alone; verdicts {third['verdicts']}")
            resident, peak = process.memory()
            print(f"resident {resident:.0f} MiB, peak {peak:.0f}")
    well = third["verdicts"] == {"Compliant": shape.pactos} and not third["withoutLimit"]
    met = steady[0] <= 60 and peak <= 512
    print(f"goals of 60 s and 512 MiB: {'met' if met else 'missed'}; all judged Compliant: {well}")
    return well


def main() -> int:
    """Print the figures of this machine; 1 if not all was judged as it should be."""
    # whoever ends this ends what it started, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    numbers = [int(text) for text in sys.argv[1:]]
    pactos, nodes, interval = (*numbers, *(10_000, 5_000, 60)[len(numbers) :])
    log = Path(os.environ.get("PACTO_BENCH_LOG", os.devnull))
    return 0 if measure(Shape(pactos, nodes, interval=interval), log) else 1


if __name__ == "__main__":
    sys.exit(main())
