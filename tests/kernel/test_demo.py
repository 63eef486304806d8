# SPDX-License-Identifier: MIT
"""`kubectl pacto demo` on this kernel: the verdict, and that nothing is left however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.hosts import until

PLUGIN = [sys.executable, "-m", "kubectl_pacto"]
PATIENCE = 120.0
EXPECTED = [
    ("INTERFACE_ABSENT", "inventory", "interface/api", "k8s-observer+ebpf"),
    ("DEPENDENCY_UNREACHABLE", "orders", "dependency/inventory", "k8s-observer+ebpf"),
    ("DEPENDENCY_UNDECLARED", "orders", "dependency/audit", "ebpf"),
]
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_GET_FD_BY_ID = 13


def program_exists(number: int) -> bool:
    """Whether the kernel still has the BPF program of this id."""
    attributes = (ctypes.c_uint32 * 16)(number)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(SYS_BPF[os.uname().machine], BPF_PROG_GET_FD_BY_ID, attributes, 64)
    if descriptor >= 0:
        os.close(descriptor)
        return True
    assert ctypes.get_errno() == errno.ENOENT
    return False


@dataclass
class Run:
    """A demo under test. Its processes carry a mark in their environment, whoever their parent is."""

    process: subprocess.Popen[str]
    mark: str
    links: set[str]
    namespaces: set[int] = field(default_factory=set)
    programs: set[int] = field(default_factory=set)

    def pids(self) -> list[int]:
        """The demo's processes that live now."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if self._is_ours(path)]

    def _is_ours(self, path: Path) -> bool:
        try:
            return self.mark.encode() in (path / "environ").read_bytes()
        except OSError:
            return False

    def pid_of(self, module: str) -> int:
        """The process that runs a module of the demo."""
        for pid in self.pids():
            if f"kubectl_pacto.cli.demo.{module}" in Path(f"/proc/{pid}/cmdline").read_text():
                return pid
        return 0

    def look(self) -> None:
        """Note the namespaces and BPF programs that exist now because of the demo."""
        own = Path("/proc/self/ns/net").stat().st_ino
        for pid in self.pids():
            with contextlib.suppress(OSError):
                self.namespaces.add(Path(f"/proc/{pid}/ns/net").stat().st_ino)
                for path in Path(f"/proc/{pid}/fdinfo").iterdir():
                    self.programs |= {int(one) for one in re.findall(r"prog_id:\s*(\d+)", path.read_text())}
        self.namespaces.discard(own)

    def wait_for_line(self, text: str) -> None:
        """Read progress until a line has this in it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        pytest.fail(f"the demo ended without saying {text!r}")

    def left(self) -> list[str]:
        """Everything of the demo that is still there."""
        name = f"pacto-demo-{self.process.pid}-*"
        found = [f"process {pid}" for pid in self.pids()]
        found += map(str, Path("/sys/fs/cgroup").glob(f"**/{name}"))
        found += map(str, Path(tempfile.gettempdir()).glob(name))
        found += [f"namespace {one}" for one in self.namespaces & living_namespaces()]
        found += [f"program {one}" for one in self.programs if program_exists(one)]
        return found + [f"link {one}" for one in host_links() - self.links]

    def assert_nothing_is_left(self) -> None:
        """Wait until all is gone; the kernel takes links and programs apart a moment later."""
        until(lambda: not self.left(), f"nothing left, but: {self.left()}")


def living_namespaces() -> set[int]:
    """The network namespaces that any process is in."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            found.add(path.stat().st_ino)
    return found


def host_links() -> set[str]:
    """The network links of this namespace."""
    return {path.name for path in Path("/sys/class/net").iterdir()}


@pytest.fixture
def start() -> Iterator[Callable[..., Run]]:
    """Starts demos, and kills them if the test did not see to their end."""
    made: list[Run] = []

    def begin(*arguments: str) -> Run:
        mark, links = f"PACTO_TEST_MARK={uuid.uuid4()}", host_links()
        name, _, value = mark.partition("=")
        process = subprocess.Popen(
            [*PLUGIN, "demo", *arguments],
            env={**os.environ, name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        made.append(Run(process, mark, links))
        return made[-1]

    yield begin
    for run in made:
        run.process.kill()
        run.process.communicate()


def test_the_verdict_stands_and_can_be_judged_again(start: Callable[..., Run], tmp_path: Path) -> None:
    run = start("-o", "json", "--keep", str(tmp_path))
    run.wait_for_line("its window runs")
    run.look()
    assert len(run.namespaces) == 5, "four pods and the bridge"
    assert run.programs
    out, progress = run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode == 0, progress
    data = json.loads(out)
    found = [
        (item["code"], item["pacto"], item["subject"], item["evidenceRefs"][0]["collector"])
        for item in data["findings"]
    ]
    assert found == EXPECTED
    assert set(data["kubernetesAlone"].values()) == {"Compliant"}
    statuses = {item["name"]: item["status"]["contractStatus"] for item in data["statuses"]}
    assert statuses == {
        "audit": "Compliant",
        "inventory": "NonCompliant",
        "orders": "NonCompliant",
        "payments": "Compliant",
    }
    assert all(item["restsOn"] for item in data["findings"])
    run.assert_nothing_is_left()
    _, _, command = progress.rpartition("kubectl pacto ")
    again = subprocess.run(
        [*PLUGIN, *command.split(), "-o", "json"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 3, again.stderr
    assert json.loads(again.stdout) == data["statuses"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "moment", ["cgroups below", "node agent running", "pods running", "inventory ", "its window runs"]
)
def test_an_interrupted_demo_leaves_nothing(
    start: Callable[..., Run], moment: str, number: signal.Signals
) -> None:
    run = start()
    run.wait_for_line(moment)
    run.look()
    assert run.pids()
    run.process.send_signal(number)
    out, said = run.process.communicate(timeout=PATIENCE)
    if number is signal.SIGKILL:
        assert run.process.returncode == -number
    else:
        assert run.process.returncode == 128 + number
        assert not run.pids(), "the demo ended before its processes did"
        assert "everything is removed again" in said
    assert out == ""
    run.assert_nothing_is_left()


@pytest.mark.parametrize("step", range(12))
def test_a_demo_interrupted_while_it_starts_leaves_nothing(start: Callable[..., Run], step: int) -> None:
    run = start()
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.process.wait(0.05 + 0.04 * step)
    run.look()
    run.process.send_signal(signal.SIGINT)
    run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode != 0
    run.assert_nothing_is_left()


def test_the_next_demo_removes_what_one_left_that_was_killed_with_its_cleaner(
    start: Callable[..., Run],
) -> None:
    run = start()
    run.wait_for_line("its window runs")
    run.look()
    os.kill(run.pid_of("cleaner"), signal.SIGKILL)
    run.process.kill()
    run.process.communicate(timeout=PATIENCE)
    until(lambda: not run.pids(), "the processes end with the one that started them")
    again = start()
    again.wait_for_line("pods running")
    again.process.send_signal(signal.SIGINT)
    again.process.communicate(timeout=PATIENCE)
    run.assert_nothing_is_left()
    again.assert_nothing_is_left()


def test_a_second_signal_while_it_cleans_up_changes_nothing(start: Callable[..., Run]) -> None:
    run = start()
    run.wait_for_line("pods running")
    run.look()
    for _ in range(5):
        run.process.send_signal(signal.SIGINT)
    run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode == 128 + signal.SIGINT
    run.assert_nothing_is_left()


@pytest.mark.parametrize(("module", "words"), [("guarded_agent", "the node agent"), ("pod", "of pod")])
def test_a_process_that_dies_ends_the_demo_with_its_name(
    start: Callable[..., Run], module: str, words: str
) -> None:
    run = start()
    run.wait_for_line("its window runs")
    run.look()
    os.kill(run.pid_of(module), signal.SIGKILL)
    _, said = run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode == 1
    assert words in said
    assert "ended (-9)" in said
    run.assert_nothing_is_left()


def test_a_verdict_that_does_not_come_in_time_says_what_is_missing(start: Callable[..., Run]) -> None:
    run = start("--timeout", "2s")
    out, _ = run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode == 1
    assert "Not seen" in out
    assert "DEPENDENCY_UNREACHABLE of orders, dependency/inventory" in out
    run.assert_nothing_is_left()


@pytest.mark.own_kernel("a host that has cgroup v1 hierarchies beside v2; the emulated ones have v2 alone")
def test_pods_are_named_by_a_v1_hierarchy_where_there_is_no_v2(tmp_path: Path) -> None:
    unified = Path("/sys/fs/cgroup/unified")
    if not (unified / "cgroup.controllers").exists():
        pytest.skip("kernel: this host has the v2 hierarchy alone")
    script = 'umount "$0" && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(unified), *PLUGIN, "demo", "--keep", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cgroupMode: v1" in (tmp_path / "node.yaml").read_text()
    (tree,) = re.findall(r"cgroups below (\S+)", done.stderr)
    assert "/pids/" in tree
    assert not Path(tree).exists()


@pytest.mark.parametrize(
    ("hide", "words"),
    [
        ("mount -t tmpfs none /sys/kernel/btf", "CONFIG_DEBUG_INFO_BTF=y"),
        ("mount -t tmpfs -o ro none /sys/fs/cgroup", "none is mounted at /sys/fs/cgroup"),
    ],
    ids=["type information", "cgroups"],
)
def test_what_the_host_lacks_is_named(hide: str, words: str) -> None:
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{hide} && exec "$@"', "sh", *PLUGIN, "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stdout == ""
