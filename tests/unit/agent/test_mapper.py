# SPDX-License-Identifier: MIT
"""The mapper over the iterators: listeners that no descriptor table holds, and what is not known of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from pacto_agent.flows import HeldSocket
from pacto_agent.iterators import Iterators
from pacto_agent.mapper import IterMapper
from pacto_agent.podmap import Place
from pacto_agent.podscan import find_tree
from tests.support.faketree import filled, make_cgroups, make_proc, make_process
from tests.unit.agent.test_baseline import HEADER, LISTENING, line

UID = "11111111-1111-4111-8111-111111111111"
POD = f"/kubepods/burstable/pod{UID}/{{a}}"
PLACE = Place(UID, netns=7, pids=(1,), by_cgroup=True)
HELD, UNHELD, GONE = 11, 12, 13


class Passes:
    """Stands for the iterators: one listener is held by a process."""

    def sockets(self) -> Iterator[tuple[int, HeldSocket]]:
        """As Iterators."""
        yield PLACE.netns, HeldSocket(10, HELD, bytes(4), 80, bytes(4), 0, 0)


@pytest.fixture
def mapper(tmp_path: Path) -> IterMapper:
    """A node whose pod has process 10, in a namespace with the held listener and one that nobody holds."""
    proc = make_proc(tmp_path, {})
    table = line(LISTENING, "00000000:0050", inode=HELD) + line(LISTENING, "00000000:0051", inode=UNHELD)
    make_process(proc, 10, {"netns": 7, "cgroup": [f"0::{POD}"], "tcp": HEADER + table, "tcp6": HEADER})
    top = make_cgroups(tmp_path, {"": [POD]})
    (top / filled(POD).lstrip("/") / "cgroup.procs").write_text("10\n")
    return IterMapper(cast(Iterators, Passes()), str(proc), find_tree(str(top)))


def listeners(mapper: IterMapper, *known: int) -> list[int] | None:
    """The inodes that a baseline has, where the view knew these; None: it could not be read."""
    ((uid, sockets),) = mapper.baselines([PLACE], lambda _uid: frozenset(known))
    assert uid == UID
    return None if sockets is None else [one.inode for one in sockets.listeners]


def test_a_listener_that_nobody_holds_stays_while_its_namespace_lists_it(mapper: IterMapper) -> None:
    assert listeners(mapper, HELD, UNHELD, GONE) == [HELD, UNHELD]


def test_what_the_view_does_not_know_is_not_looked_for(mapper: IterMapper) -> None:
    assert listeners(mapper) == [HELD]


def test_where_the_namespace_cannot_be_read_nothing_is_known(mapper: IterMapper, tmp_path: Path) -> None:
    (tmp_path / "cgroup" / filled(POD).lstrip("/") / "cgroup.procs").write_text("999\n")
    assert listeners(mapper, HELD, UNHELD) is None
    assert listeners(mapper, HELD) == [HELD]
