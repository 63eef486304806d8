# SPDX-License-Identifier: MIT
"""The demo's node: a bridge, pods, and the real agent watching them; kubelet and runtime in one.

Everything it makes is listed with the cleaner before it is made. The node's own process stays in the
host's network namespace and outside every pod, as a runtime's shims do: the agent tells by that which
namespace is the node's own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, Protocol

from kubectl_pacto.cli.demo import cgroups, cleaner
from kubectl_pacto.cli.demo.answers import DONE
from kubectl_pacto.cli.demo.objects import ADDRESSES, APPS, PORT, App, LivePod
from kubectl_pacto.cli.demo.pod import Task
from kubectl_pacto.errors import DemoFailed
from kubectl_pacto.model.node import AGENT_NAMESPACE

NAME: Final = "demo-node"
ANSWER_SECONDS: Final = 15.0
AGENT_STOP_SECONDS: Final = 3.0
KILL_SECONDS: Final = 5.0
CLEAN_SECONDS: Final = 20.0
PUBLISH: Final = "1s"
RESYNC: Final = "2s"

Process = subprocess.Popen[str]


class Wait(Protocol):
    """Waits for files, and raises when the demo has to end instead."""

    def __call__(self, seconds: float, *files: IO[str]) -> bool:
        """Whether one of the files can be read before the time is over."""


class Node:
    """The running node; `close` may be called twice. `left`: what it could not remove, and why."""

    def __init__(self, mount: str, wait: Wait) -> None:
        token = f"{cgroups.MARK}{os.getpid()}-{secrets.token_hex(3)}"
        self._mount, self._wait = mount, wait
        self.tree = Path(mount, token)
        self.directory = Path(tempfile.gettempdir(), token)
        self.view_file = self.directory / "node.json"
        self._agent_log = self.directory / "agent.log"
        self._cleaner: Process | None = None
        self._fabric: Process | None = None
        self._agent: Process | None = None
        self._processes: dict[str, Process] = {}
        self._pods: dict[str, LivePod] = {}
        self.left: list[str] = []

    def open(self, say: Callable[[str], None]) -> None:
        """Start everything; raises DemoFailed naming the step that did not work."""
        self._cleaner = _start("cleaner", str(self.tree), str(self.directory))
        self._expect(self._cleaner, cleaner.READY, "start the process that cleans up")
        try:
            cleaner.sweep(self._mount, str(self.directory.parent))
            self.directory.mkdir(mode=0o700)
            (self.tree / "node").mkdir(parents=True)
        except OSError as error:
            raise DemoFailed(problem=f"{error.filename}: {error.strerror}") from error
        say(f"cgroups below {self.tree}")
        self._fabric = _start("fabric", str(os.getpid()), str(self.tree / "node"))
        self._expect(self._fabric, DONE, "make a network without a way out")
        self._start_agent()
        say(f"node agent running, publishing every {PUBLISH}")
        for app in APPS:
            self._start_pod(app)
        for app in APPS:
            self._attach(app)
        say(f"pods running: {', '.join(f'{app.name} {app.address}' for app in APPS)}")

    def _start_agent(self) -> None:
        options = ["--sink", "file", "--output", str(self.view_file), "--node-name", NAME]
        options += ["--namespace", AGENT_NAMESPACE, "--pod-uid", ""]
        options += ["--publish-interval", PUBLISH, "--resync-interval", RESYNC]
        with self._agent_log.open("w", encoding="utf-8") as log:
            self._agent = _start(
                "guarded_agent", str(os.getpid()), str(self.tree / "node"), *options, errors=log.fileno()
            )

    def _start_pod(self, app: App) -> None:
        pod = LivePod(
            uid=str(uuid.uuid4()),
            node=NAME,
            address=app.address,
            container=secrets.token_hex(32),
            started=time.time(),
        )
        cgroup = cgroups.pod_directory(str(self.tree), pod.uid, pod.container)
        cgroup.mkdir(parents=True)
        task = Task(
            address=app.address,
            cgroup=str(cgroup),
            ready_file=str(self._ready_file(app.name)),
            serve=PORT if app.serves else 0,
            calls=tuple((ADDRESSES[name], PORT) for name in app.calls),
        )
        self._pods[app.name] = pod
        self._processes[app.name] = _start("pod", str(os.getpid()), task.encode())

    def _attach(self, app: App) -> None:
        process, fabric = self._processes[app.name], self._fabric
        assert fabric is not None
        self._expect(process, DONE, f"give pod {app.name} a network namespace")
        _tell(fabric, str(process.pid))
        self._expect(fabric, DONE, f"connect pod {app.name}")
        _tell(process, "go")
        self._expect(process, DONE, f"start pod {app.name}")

    def _expect(self, process: Process, word: str, what: str) -> None:
        """Wait for the process to say `word`; anything else is its explanation."""
        assert process.stdout is not None
        is_there = self._wait(ANSWER_SECONDS, process.stdout)
        answer = process.stdout.readline().strip() if is_there else f"no answer within {ANSWER_SECONDS:g} s"
        if answer != word:
            raise DemoFailed(problem=f"cannot {what}: {answer or 'the process ended'}")

    def _ready_file(self, app: str) -> Path:
        return self.directory / f"{app}.ready"

    def pods(self) -> dict[str, LivePod]:
        """The pods as kubelet would report them now; raises DemoFailed when a process ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise DemoFailed(problem=f"the process of pod {name} ended ({process.returncode})")
        return {
            name: LivePod(pod.uid, pod.node, pod.address, pod.container, pod.started, self._probe(name))
            for name, pod in self._pods.items()
        }

    def _probe(self, app: str) -> bool:
        """The readiness probe of all these pods: exec, `test -f`."""
        return self._ready_file(app).is_file()

    def check_agent(self) -> None:
        """Raise DemoFailed with the agent's own words if it has ended."""
        if self._agent is not None and self._agent.poll() is not None:
            words = self._agent_log.read_text(encoding="utf-8", errors="replace").strip()
            last = words.splitlines()[-1] if words else "it said nothing"
            raise DemoFailed(problem=f"the node agent ended ({self._agent.returncode}): {last}")

    def close(self) -> None:
        """Stop everything and wait until the cleaner is done."""
        if self._agent is not None and self._agent.poll() is None:
            self._agent.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._agent.wait(AGENT_STOP_SECONDS)
        for process in (*self._processes.values(), self._fabric, self._agent):
            if process is not None:
                _kill(process)
        janitor, self._cleaner = self._cleaner, None
        if janitor is None:
            return
        try:
            words, _ = janitor.communicate(timeout=CLEAN_SECONDS)
        except subprocess.TimeoutExpired:
            self.left = [f"{self.tree} and {self.directory}: still being removed"]
        else:
            self.left = [line for line in words.splitlines() if line != cleaner.READY]


def _start(module: str, *arguments: str, errors: int | None = None) -> Process:
    """A process of this package, deaf to the terminal's signals."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        bufsize=1,
        start_new_session=True,
    )


def _kill(process: Process) -> None:
    """End a process; what it started is the cleaner's, so nothing here waits for that."""
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_SECONDS)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def _tell(process: Process, line: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # then what it is expected to answer says more
        process.stdin.write(f"{line}\n")
