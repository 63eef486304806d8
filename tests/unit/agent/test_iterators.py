# SPDX-License-Identifier: MIT
"""What the iterators' reader makes of the kernel's answers: rows in pieces, pauses, and too much of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import cast

import pytest

from kubectl_pacto.errors import ResyncFailed
from pacto_agent import iterators
from pacto_agent.flows import HeldSocket, Sorting
from pacto_agent.iterators import SOCKET, Iterators
from pacto_agent.libbpf import Libbpf


class Pipe:
    """Stands for an iterator's descriptor: what a test writes is what the kernel says."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        lib = SimpleNamespace(
            bpf_link__fd=lambda _link: 0, bpf_iter_create=lambda _link: os.dup(self.reading)
        )
        links = {"list_sockets": None, "list_processes": None}
        self.iterators = Iterators(cast(Libbpf, SimpleNamespace(lib=lib)), links, ExitStack())

    def close(self) -> None:
        """Both ends."""
        for descriptor in (self.reading, self.writing):
            os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """An iterator that says nothing yet."""
    made = Pipe()
    yield made
    made.close()


def row(inode: int, netns: int = 7, state: int = 10) -> bytes:
    """One IPv4 socket."""
    local, remote = bytes([127, 0, 0, 1]) + bytes(12), bytes(16)
    return SOCKET.pack(inode, 99, 0, local, remote, netns, 80, 0, state, 4, 0, 0, 0)


def test_rows_that_come_in_pieces_are_whole_and_each_socket_once(pipe: Pipe) -> None:
    text = row(1) + row(2, netns=8) + row(1)
    os.write(pipe.writing, text[:70])
    found = pipe.iterators.sockets()
    os.write(pipe.writing, text[70:])
    os.close(pipe.writing)
    pipe.writing = os.dup(pipe.reading)
    assert [(netns, one.inode) for netns, one in found] == [(7, 1), (8, 2)]


def test_a_pass_that_never_ends_is_given_up_with_the_remedy(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iterators, "PASS_SECONDS", 0.05)
    began = time.thread_time()
    with pytest.raises(ResyncFailed, match=r"more than 0\.05 s of CPU .*--mapper proc"):
        list(pipe.iterators.sockets())
    assert 0.05 <= time.thread_time() - began < 5


def test_a_pass_within_its_bound_waits_out_the_kernels_pauses(pipe: Pipe) -> None:
    os.write(pipe.writing, row(1))
    found = pipe.iterators.sockets()
    assert next(found)[1].inode == 1
    os.close(pipe.writing)
    pipe.writing = os.dup(pipe.reading)
    assert list(found) == []


def test_what_either_mapper_reads_is_sorted_out_alike() -> None:
    local, peer = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    held = [
        HeldSocket(10, 1, bytes(4), 80, bytes(4), 0, 0),
        HeldSocket(10, 0, bytes(4), 81, bytes(4), 0, 0),  # of no file
        HeldSocket(10, 2, bytes(4), 0, bytes(4), 0, 0),  # its port is not chosen yet
        HeldSocket(1, 3, local, 80, peer, 40000, 0),  # accepted
        HeldSocket(1, 4, local, 40001, peer, 5432, 0),
        HeldSocket(2, 5, local, 40002, peer, 5433, 0),  # its first SYN may still be answered
        HeldSocket(2, 6, local, 40003, peer, 5434, 2, None, 9),
    ]
    sorting = Sorting()
    for one in held:
        sorting.add(one)
    sorting.malformed = 3
    sockets = sorting.sockets()
    assert [(one.inode, one.port) for one in sockets.listeners] == [(1, 80)]
    assert [(one.port, one.pending, one.cgroup_id) for one in sockets.outbound] == [
        (5432, False, 0),
        (5434, True, 9),
    ]
    assert sockets.malformed == 3
