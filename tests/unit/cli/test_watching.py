# SPDX-License-Identifier: MIT
"""A watch in a process of its own: a pipe gets what changed, a terminal is redrawn, interrupts are quiet."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_pacto.cli import watching
from kubectl_pacto.cli.watching import fit, steady
from tests.support.fake_api import Fault
from tests.support.fleet_api import FleetApi
from tests.support.sources import ROOT
from tests.unit.cli.fleet_scene import fill, lease

COMMAND = [sys.executable, "-m", "kubectl_pacto"]
PAYMENTS = "/apis/pacto.trianalab.io/v1alpha1/namespaces/shop/pactos/payments"
ORDERS = "/apis/pacto.trianalab.io/v1alpha1/namespaces/shop/pactos/orders"
REDRAW = b"\x1b[H\x1b[J"
WAIT = 20.0


def environment(**more: str) -> dict[str, str]:
    """Without colours that a caller forces."""
    kept = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    return {**kept, "KUBECONFIG": "/nonexistent", "TERM": "xterm", **more}


@pytest.fixture
def scene(empty: tuple[FleetApi, str]) -> tuple[FleetApi, str]:
    """The whole scene, and its address."""
    fill(empty[0])
    return empty


def read_until(descriptor: int, wanted: bytes, count: int = 1) -> bytes:
    """What comes until `wanted` has come so often."""
    seen, end = b"", time.monotonic() + WAIT
    while seen.count(wanted) < count:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"only {seen!r} came"
        piece = os.read(descriptor, 65536)
        assert piece, f"ended after {seen!r}"
        seen += piece
    return seen


@contextmanager
def started(*words: str, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards."""
    process = subprocess.Popen([*COMMAND, *words], cwd=ROOT, env=environment(), **how)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def change(api: FleetApi, path: str, verdict: str) -> None:
    """As the operator would write another verdict."""
    raw = api.objects[path]
    status = {**raw["status"], "contractStatus": verdict, "findings": []}
    api.put(path, {**raw, "status": status})


def test_a_pipe_gets_the_screen_once_and_then_what_changed(scene: tuple[FleetApi, str]) -> None:
    api, url = scene
    words = ("status", "-n", "shop", "-w", "--server", url)
    with started(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        out = process.stdout.fileno()
        first = read_until(out, b"DEPENDENCY_UNDECLARED", 2)
        assert first.startswith(b"Operator")
        api.add(lease("node-a", "2026-10-18T09:12:41Z"))  # time alone: nothing to tell
        change(api, PAYMENTS, "Compliant")
        then = read_until(out, b"payments").decode()
        assert then.splitlines()[0].startswith("Pactos       1 Warning, 2 Compliant")
        assert then.splitlines()[-1].split()[:2] == ["payments", "Compliant"]
        del api.objects[ORDERS]
        api.version += 1
        gone = read_until(out, b"Deleted").decode()
        assert gone.splitlines()[-1].split()[:2] == ["orders", "Deleted"]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=WAIT)
        assert (process.returncode, errors) == (130, b"")
    assert b"\x1b" not in first + then.encode() + gone.encode() + rest
    assert b"inventory" not in then.encode() + gone.encode() + rest


def test_a_change_is_shown_at_once_through_the_servers_watch(scene: tuple[FleetApi, str]) -> None:
    api, url = scene
    with started("status", "-A", "-w", "-o", "name", "--server", url, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"inventory")
        while not any("watch=true" in one.path for one in api.seen):
            time.sleep(0.01)
        begin = time.monotonic()
        change(api, PAYMENTS, "Warning")
        read_until(process.stdout.fileno(), b"inventory")
        assert time.monotonic() - begin < 4.5


def test_without_the_right_to_watch_it_looks_again_and_again(
    scene: tuple[FleetApi, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kubectl_pacto.cli.main import main

    api, url = scene
    api.no_watch = True
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            change(api, PAYMENTS, "Compliant")
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=sleep))
    assert main(["status", "-n", "shop", "-w", "--server", url]) == 130
    assert slept == [5.0, 5.0]
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["payments", "Compliant"]


def test_a_terminal_is_redrawn_and_its_interrupt_is_quiet(scene: tuple[FleetApi, str]) -> None:
    api, url = scene
    master, slave = pty.openpty()
    how = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    take = f"import os, sys; os.login_tty({slave}); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", take, *COMMAND, "status", "-n", "shop", "-w", "--server", url]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), pass_fds=[slave], **how)  # type: ignore[call-overload]
    os.close(slave)
    try:
        first = read_until(master, b"DEPENDENCY_UNDECLARED", 2)
        change(api, PAYMENTS, "Compliant")
        second = read_until(master, REDRAW) + read_until(master, b"inventory")
        os.write(master, b"\x03")
        assert process.wait(WAIT) == 130
    finally:
        process.kill()
        process.wait(10)
        os.close(master)
    assert first.startswith(REDRAW + b"Operator")
    assert b"\x1b[31mNonCompliant" in first
    assert b"NonCompliant" not in second
    assert b"Traceback" not in first + second


@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["explain"], ["status", "-A"], ["status", "-A", "-w"], ["status", "-h"]],
)
def test_a_reader_that_has_gone_ends_it_as_it_ends_kubectl(
    scene: tuple[FleetApi, str], words: list[str]
) -> None:
    server = ["--server", scene[1]] if words[0] == "status" else []
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *words, *server], cwd=ROOT, env=environment(), stdout=writer,
        stderr=subprocess.PIPE, check=False, timeout=WAIT,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_standard_error_that_is_gone_does_no_harm(scene: tuple[FleetApi, str]) -> None:
    line = f"{' '.join(COMMAND)} status -n none --server {scene[1]} 2>&-"
    done = subprocess.run(
        ["sh", "-c", line], cwd=ROOT, env=environment(), capture_output=True, check=False, timeout=WAIT
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"Operator")


# sends an interrupt as a module begins to load, so at a moment that no timer could hit twice; where it is
# told to, within a callback of a weak reference as each import has one: Python drops what is raised there
INTERRUPT = """
import os, signal, sys, weakref
wanted, sys.argv = sys.argv[1], ["kubectl-pacto", *sys.argv[2:]]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted.removeprefix("callback:"):
            interrupt = lambda *_: os.kill(os.getpid(), signal.SIGINT)
            if name == wanted:
                interrupt()
            lock = Finder()
            watched = weakref.ref(lock, interrupt)
            del lock
sys.meta_path.insert(0, Finder())
from kubectl_pacto.entry import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module",
    [
        "kubectl_pacto.cli.main", "kubectl_pacto.errors", "kubectl_pacto.cli.terminal", "click",
        "kubectl_pacto.cli.status_cmd", "kubectl_pacto.kube.connect", "kubectl_pacto.collect.fleet",
        "kubectl_pacto.cli.render.status", "callback:click", "callback:kubectl_pacto.cli.status_cmd",
        "callback:kubectl_pacto.collect.fleet", "callback:kubectl_pacto.kube.connect",
    ],
)  # fmt: skip
def test_an_interrupt_within_an_import_is_quiet(scene: tuple[FleetApi, str], module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, module, "status", "--server", scene[1]],
        cwd=ROOT, env=environment(), capture_output=True, check=False, timeout=WAIT,
    )  # fmt: skip
    assert done.returncode in (130, -signal.SIGINT)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_an_interrupt_while_a_server_thinks_is_quiet(scene: tuple[FleetApi, str]) -> None:
    api, url = scene
    api.faults.append(Fault(hang_seconds=3.0))
    with started("status", "--server", url, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not api.seen:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=WAIT)
        assert (process.returncode, out, errors) == (130, b"", b"")


def test_an_interrupt_that_a_shell_has_told_to_ignore_is_ignored(scene: tuple[FleetApi, str]) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv[1:] = ['-h']; "
        "from kubectl_pacto.entry import main; main(); "
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("True\n")


def test_a_screen_that_does_not_fit_says_how_much_is_missing() -> None:
    text = "".join(f"line {number}\n" for number in range(10))
    assert fit(text, 80, 11) == text
    assert fit(text, 80, 6) == "line 0\nline 1\nline 2\nline 3\n(6 more lines)\n"
    assert fit("\x1b[31maaaa\x1b[0m\nb\n", 4, 3) == "\x1b[31maaaa\x1b[0m\nb\n"
    assert fit("aaaaa\nb\nc\n", 4, 4) == "aaaaa\n(2 more lines)\n"


def test_steady_leaves_out_what_the_clock_changes() -> None:
    data: dict[str, Any] = {"generatedAt": "x", "items": [{"heartbeatAgeSeconds": 1, "node": "a"}]}
    assert steady(data) == {"items": [{"node": "a"}]}
