# SPDX-License-Identifier: MIT
"""The demo's own processes, as far as they go without root."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kubectl_pacto.cli.demo import fabric, netlink, pod
from kubectl_pacto.cli.demo.cleaner import READY
from kubectl_pacto.cli.demo.pod import Task

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux processes")


def cleaner(tree: Path, directory: Path) -> subprocess.Popen[str]:
    made = subprocess.Popen(
        [sys.executable, "-m", "kubectl_pacto.cli.demo.cleaner", str(tree), str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert made.stdout is not None
    assert made.stdout.readline().strip() == READY
    return made


def test_the_cleaner_waits_for_its_input_to_end_whatever_signal_comes(tmp_path: Path) -> None:
    tree, directory = tmp_path / "tree", tmp_path / "directory"
    with cleaner(tree, directory) as process:
        (tree / "kubepods").mkdir(parents=True)
        directory.mkdir()
        (directory / "file").touch()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        assert directory.exists()
        words, _ = process.communicate(timeout=30)
    assert (words, process.returncode) == ("", 0)
    assert list(tmp_path.iterdir()) == []


def test_the_cleaner_has_nothing_to_do_when_nothing_was_made(tmp_path: Path) -> None:
    with cleaner(tmp_path / "tree", tmp_path / "directory") as process:
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_child_whose_parent_is_gone_ends() -> None:
    code = "from kubectl_pacto.cli.demo import linux; linux.die_with(1 << 30); print('alive')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_task_survives_its_argument() -> None:
    task = Task("10.0.0.1", "/c/g", "/r", 8080, (("10.0.0.2", 1), ("10.0.0.3", 2)))
    assert Task.decode(task.encode()) == task


def test_a_served_port_answers_a_call() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve_until_shut() -> None:
            with contextlib.suppress(OSError):
                pod.serve(listener)

        server = threading.Thread(target=serve_until_shut, daemon=True)
        server.start()
        assert pod.call("127.0.0.1", port)
        listener.shutdown(socket.SHUT_RDWR)  # ends accept(): the thread must not outlive its socket
        server.join(5)
        assert not server.is_alive()


def test_a_refused_call_is_no_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert not pod.call("127.0.0.1", port)


def test_the_fabric_answers_each_request(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[str, int]] = []

    def veth(name: str, *, master: int, peer: str, peer_pid: int) -> None:
        if peer_pid == 2:
            raise OSError(3, "make the veth pair veth1: No such process")
        made.append((name, peer_pid))

    monkeypatch.setattr(netlink, "make_veth", veth)
    fabric.serve(7, ["1\n", "2\n", "3\n"])
    assert capfd.readouterr().out.splitlines() == ["ok", "make the veth pair veth1: No such process", "ok"]
    assert made == [("veth0", 1), ("veth2", 3)]


def test_leaving_the_network_needs_root() -> None:
    # what an ordinary user gets, also where the tests run as root
    become = "os.geteuid() or os.setuid(65534)"
    code = f"import os; from kubectl_pacto.cli.demo import linux; {become}; linux.leave_network()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "unshare" in done.stderr.splitlines()[-1]


POD = "pod.main([str(os.getppid()), pod.Task('', '', '').encode()])"


@pytest.mark.parametrize(
    "started",
    [
        f"pod.linux.leave_network = lambda: None; {POD}",
        f"pod.linux.leave_network = lambda: os.close(-1); {POD}",  # which is an OSError
        "fabric.main([str(os.getppid()), '/no/such/cgroup'])",
        "fabric.netlink.make_veth = lambda *_, **__: None; fabric.serve(7, ['1'])",
    ],
)
def test_a_process_whose_demo_was_interrupted_ends_without_a_word(started: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = f"import os; from kubectl_pacto.cli.demo import fabric, pod; {started}"
    done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
