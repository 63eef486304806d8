# SPDX-License-Identifier: MIT
"""The life of an agent: it opens step by step, says what failed, and leaves nothing behind."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.errors import KernelWithoutBTF
from kubectl_pacto.model.node import CollectionReason, CollectionState, PodReason
from kubectl_pacto.model.node_codec import decode_node
from pacto_agent import limits
from pacto_agent.inspect_node import inspect_node
from pacto_agent.tracer import open_tracer
from tests.support.agents import bpf_objects, exists, options, watching
from tests.support.hosts import PATIENCE, Host, Pod, until
from tests.support.sources import with_sources

PR_CAPBSET_DROP = 24
HAS_ITERATORS = limits.read_facts().kernel >= limits.ITERATOR_KERNEL
FALLBACK = "pacto agent: mapper proc, for iter does not load: this kernel has no iterator of sockets"


@contextmanager
def agent_process(
    *arguments: str, pace: tuple[str, ...] = ("--publish-interval", "200ms"), **more: Any
) -> Iterator[subprocess.Popen[str]]:
    """`pacto agent` as its own process, killed at the end if it still lives."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pacto_agent", *arguments, *pace, "--node-name", "n"],
        env=with_sources(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def read_list(path: Path) -> list[dict[str, Any]]:
    """The items of the file sink's list, none while there is no file."""
    if not path.exists():
        return []
    items = json.loads(path.read_text())["items"]
    assert isinstance(items, list)
    return items


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_runs_until_told_to_stop_and_leaves_nothing(
    pod: Pod, tmp_path: Path, number: signal.Signals
) -> None:
    pod.run("listen('0.0.0.0', 8080)")
    output = tmp_path / "view.json"
    with agent_process("--sink", "file", "--output", str(output)) as process:
        until(lambda: len(read_list(output)) == 2, "the object and its Lease")
        held = bpf_objects(process.pid)
        assert {what for what, _ in held} >= {"prog_id", "map_id", "link_id"}
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        said = process.stderr.read()
        # before 5.11 there is one line: which mapper it fell back to
        assert said.splitlines() == [] or (not HAS_ITERATORS and said.count("\n") == 1 and FALLBACK in said)
    until(lambda: not any(exists(*one) for one in held), "every BPF object gone")
    view, lease = read_list(output)
    known = {one.uid: one for one in decode_node(view).pods}[pod.uid]
    assert [listener.port for listener in known.listeners] == [8080]
    assert known.complete
    assert lease["kind"] == "Lease"
    assert list(tmp_path.iterdir()) == [output], "no temporary file stays"


def test_what_an_agent_saw_last_is_published_when_it_is_told_to_stop(pod: Pod, tmp_path: Path) -> None:
    output = tmp_path / "view.json"
    with agent_process(
        "--sink", "file", "--output", str(output), pace=("--publish-interval", "60s")
    ) as process:
        until(lambda: len(read_list(output)) == 2, "the object and its Lease")
        before = read_list(output)
        pod.run("listen('0.0.0.0', 8080)")
        process.terminate()
        assert process.wait(PATIENCE) == 0
    view, lease = read_list(output)
    known = {one.uid: one for one in decode_node(view).pods}[pod.uid]
    assert [listener.port for listener in known.listeners] == [8080]
    assert lease == before[1], "nobody watches from now on"


def test_a_killed_agent_leaves_nothing_in_the_kernel(tmp_path: Path) -> None:
    output = tmp_path / "view.json"
    with agent_process("--sink", "file", "--output", str(output)) as process:
        until(lambda: len(read_list(output)) == 2, "the object and its Lease")
        held = bpf_objects(process.pid)
        process.kill()
        process.wait(PATIENCE)
    until(lambda: not any(exists(*one) for one in held), "every BPF object gone")


def test_standard_output_gets_one_object_a_line(pod: Pod) -> None:
    with agent_process("--sink", "stdout") as process:
        assert process.stdout is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert (first["kind"], second["kind"]) == ("NodeRuntimeObservation", "Lease")
        assert first["metadata"]["name"] == second["metadata"]["name"] == "n"


@pytest.mark.parametrize("command", [("--sink", "stdout"), ("top",)])
def test_an_agent_that_nobody_reads_ends_at_once_and_quietly(pod: Pod, command: tuple[str, ...]) -> None:
    given = (*command, "--interval" if command == ("top",) else "--publish-interval", "60s")
    with agent_process(*given, pace=()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held = bpf_objects(process.pid)
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr is not None
        assert [line for line in process.stderr.read().splitlines() if FALLBACK not in line] == []
    until(lambda: not any(exists(*one) for one in held), "every BPF object gone")


def test_a_tracer_closed_twice_leaves_no_thread_and_no_object(host: Host) -> None:
    threads = threading.active_count()
    before = bpf_objects(os.getpid())
    tracer = open_tracer()
    tracer.start(poll_ms=60_000)
    opened = bpf_objects(os.getpid()) - before
    assert {what for what, _ in opened} == {"prog_id", "map_id", "link_id"}
    tracer.close()
    tracer.close()
    assert threading.active_count() == threads
    assert bpf_objects(os.getpid()) == before
    until(lambda: not any(exists(*one) for one in opened), "every BPF object gone")


def test_a_tracer_that_was_never_started_closes(host: Host) -> None:
    before = bpf_objects(os.getpid())
    open_tracer().close()
    assert bpf_objects(os.getpid()) == before


def test_opening_many_times_holds_on_to_nothing(host: Host) -> None:
    def descriptors() -> int:
        gc.collect()  # the reader's own two go with its memory
        return len(list(Path("/proc/self/fd").iterdir()))

    open_tracer().close()
    before = descriptors()
    for _ in range(10):
        open_tracer().close()
    assert descriptors() == before


def test_a_kernel_without_btf_is_said_and_leaves_nothing(host: Host, tmp_path: Path) -> None:
    before = bpf_objects(os.getpid())
    with pytest.raises(KernelWithoutBTF, match="no-such-file"):
        open_tracer(btf_path=str(tmp_path / "no-such-file"))
    assert bpf_objects(os.getpid()) == before


def test_an_agent_that_cannot_load_is_failed_and_goes_on_publishing(pod: Pod, tmp_path: Path) -> None:
    with watching(options(btf=str(tmp_path / "no-such-file"), mapper="proc")) as agent:
        agent.await_publish()
        collection = agent.view.collection
        assert (collection.state, collection.reason) == (CollectionState.FAILED, CollectionReason.LOAD_FAILED)
        assert "BTF" in collection.message


def test_auto_takes_the_iterators_where_the_kernel_has_them_and_says_which_mapper_it_took(
    pod: Pod, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = "iter" if HAS_ITERATORS else "proc"
    with watching(options()) as agent:
        agent.await_complete(pod.uid)
        assert agent.view.collection.state is CollectionState.RUNNING
        assert agent.view.node.mapper == expected
        assert (FALLBACK in capfd.readouterr().err) == (not HAS_ITERATORS)
    (said,) = (check for check in inspect_node(options()) if check.id == "mapper")
    assert said.result == "ok"
    assert said.detail.startswith(f"{expected}: ")


@pytest.mark.parametrize(("capability", "named"), [(limits.CAP_BPF, "BPF"), (limits.CAP_PERFMON, "PERFMON")])
def test_a_missing_capability_is_named(pod: Pod, tmp_path: Path, capability: int, named: str) -> None:
    output = tmp_path / "view.json"

    def drop() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        for one in (capability, limits.CAP_SYS_ADMIN):
            assert libc.prctl(PR_CAPBSET_DROP, one, 0, 0, 0) == 0

    with agent_process("--sink", "file", "--output", str(output), preexec_fn=drop) as process:
        until(lambda: len(read_list(output)) == 2, "the object and its Lease")
        view = decode_node(read_list(output)[0])
        assert view.collection.reason is CollectionReason.LOAD_FAILED
        assert named in view.collection.message
        assert "ulimit" not in view.collection.message, "libbpf's advice misleads here"
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_without_ptrace_rights_the_proc_mapper_says_so(pod: Pod, tmp_path: Path) -> None:
    output = tmp_path / "view.json"

    def drop() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(PR_CAPBSET_DROP, limits.CAP_SYS_PTRACE, 0, 0, 0) == 0

    arguments = ("--sink", "file", "--output", str(output), "--mapper", "proc")
    with agent_process(*arguments, preexec_fn=drop) as process:
        until(lambda: len(read_list(output)) == 2, "the object and its Lease")
        view = decode_node(read_list(output)[0])
        assert view.collection.reason is CollectionReason.RESYNC_FAILED
        assert "SYS_PTRACE" in view.collection.message
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_a_loss_degrades_every_pod_until_a_baseline_that_began_after_it(pod: Pod) -> None:
    with watching(options(resync=2.0)) as agent:
        # listen events of a namespace that fill the ring while the reader cannot keep up are rare:
        # a loss is made by hand where the kernel would count it
        assert agent.known(pod.uid).complete
        agent.lose(1)
        views = [agent.view]

        def is_degraded() -> bool:
            """By one view: the next may be well again."""
            views.append(agent.view)
            return any(
                PodReason.EVENTS_DROPPED in one.reasons for one in views[-1].pods if one.uid == pod.uid
            )

        until(is_degraded, "a degraded pod")
        assert views[-1].collection.reason is CollectionReason.EVENTS_DROPPED
        assert views[-1].collection.dropped_events == 1
        agent.await_complete(pod.uid)
        assert agent.view.collection.state is CollectionState.RUNNING
