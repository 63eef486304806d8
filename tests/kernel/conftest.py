# SPDX-License-Identifier: MIT
"""The tier that loads the real program: what it needs, and the node and tracer that tests share."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import hosts
from tests.support.events import Recorder, recording
from tests.support.hosts import Host, Pod
from tests.support.inside import IPPROTO_MPTCP
from tests.support.require import require, require_root


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is of the kernel tier."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.kernel)


@pytest.fixture(autouse=True, scope="session")
def _kernel() -> None:
    require_root("kernel")
    require("kernel", "" if Path("/sys/kernel/btf/vmlinux").exists() else "no /sys/kernel/btf/vmlinux")
    require("kernel", "" if hosts.v2_root() else "no v2 cgroup hierarchy is mounted")


@pytest.fixture
def host(_kernel: None) -> Iterator[Host]:
    """A node without pods."""
    made = Host()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def pod(host: Host) -> Pod:
    """A pod of that node."""
    return host.pod()


@pytest.fixture
def recorder(host: Host) -> Iterator[Recorder]:
    """A tracer that is read on demand; opened after the node, so that it sees none of its making."""
    with recording() as made:
        yield made


@pytest.fixture
def mptcp() -> int:
    """MPTCP's protocol number, where the kernel was built with it."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        pytest.skip(f"kernel: without MPTCP: {error.strerror}")
    return IPPROTO_MPTCP


@pytest.fixture(params=["proc", "iter"])
def mapper(request: pytest.FixtureRequest) -> str:
    """Either mapper; the iterators are younger than the oldest kernel."""
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if request.param == "iter" and release < (5, 11):
        pytest.skip("kernel: no iterator of sockets before 5.11")
    return str(request.param)
