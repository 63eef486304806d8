# SPDX-License-Identifier: MIT
"""The measures of an upgrade see what they are there to see."""

from __future__ import annotations

from tests.acceptance.watcher import Seen
from tests.upgrade.lookout import Moment, Node, longest_silence, together, unknown


def said(at: float, status: str) -> Seen:
    """A status that was told then."""
    return Seen(at, at, {"contractStatus": status})


def test_a_status_is_unknown_until_it_says_something_else() -> None:
    seen = [said(1, "Compliant"), said(12, "Unknown"), said(13, "Unknown"), said(15, "Compliant")]
    assert unknown(seen, begun=10, ended=20) == [(2, 3), (3, 5)]
    assert unknown([*seen, said(18, "Unknown")], begun=10, ended=20)[-1] == (8, 10)
    assert unknown([said(5, "Unknown")], begun=10, ended=20) == [(0, 10)]
    assert unknown([said(21, "Unknown")], begun=10, ended=20) == []


def test_two_are_unknown_together_only_while_both_are() -> None:
    assert together([(1, 3), (6, 9)], [(2, 7)]) == [(2, 3), (6, 7)]
    assert together([(1, 2)], [(2, 3)]) == []


def moment(at: float, renewed: str) -> Moment:
    """A node whose heartbeat was this."""
    return Moment(at, {"node": Node(renewed, "s", frozenset({("agent", "image:1", True)}))})


def test_a_silence_lasts_from_one_heartbeat_to_the_next_also_at_the_end() -> None:
    beats = [moment(0, "a"), moment(1, "b"), moment(2, "b"), moment(9, "c"), moment(10, "d")]
    assert longest_silence(beats, "node") == 8
    assert longest_silence([*beats, moment(25, "d")], "node") == 15


def test_an_agent_that_goes_does_not_count_as_running() -> None:
    assert moment(0, "a").nodes["node"].runs("image:1")
    assert not moment(0, "a").nodes["node"].runs("image:2")
    assert not Node("a", "s", frozenset({("agent", "image:1", False)})).runs("image:1")
