# SPDX-License-Identifier: MIT
"""What runs on a CPU when the kernel decides about a connection is not whose connection it is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kubectl_pacto.model.node import FailureReason
from tests.support.events import Outcome, Recorder
from tests.support.hosts import Host, Pod, group_id, until

DEFINE = "import threading\ndef spin():\n    while True: pass"
SPIN = "os.sched_setaffinity(0, [{cpu}]); threading.Thread(target=spin, daemon=True).start()"


@pytest.fixture
def busy(host: Host) -> Iterator[Pod]:
    """A pod that keeps every CPU busy, so that timers of others run while it is current."""
    made = host.pod()
    made.run(DEFINE)
    cpus = sorted(os.sched_getaffinity(0))
    children = [made.number(f"child({SPIN.format(cpu=cpu)!r})") for cpu in cpus]
    yield made
    made.run(f"[end(pid) for pid in {children}]")


def test_a_timer_that_interrupts_a_busy_pod_gives_it_no_peer(
    host: Host, busy: Pod, recorder: Recorder
) -> None:
    caller = host.pod()
    caller.run("sysctl('ipv4/tcp_syn_retries', '1')")
    port = caller.number("black_hole()")
    recorder.gather()
    recorder.all_sums.clear()
    for _ in range(20):
        caller.number(f"start_connecting('127.0.0.1', {port})")
    until(
        lambda: recorder.outcome(caller, "127.0.0.1", port).failed == 20,
        "twenty attempts that the kernel's timer ends",
    )
    assert recorder.outcome(caller, "127.0.0.1", port) == Outcome(failed=20, reason=FailureReason.TIMEOUT)
    assert caller.group is not None
    assert busy.group is not None
    told = {one.cgroup_id for one in recorder.all_sums}
    assert group_id(caller.group) in told
    assert group_id(busy.group) not in told
    assert recorder.sums(busy) == []
