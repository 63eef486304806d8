# SPDX-License-Identifier: MIT
"""A new pod is looked for at once, one that stays unmapped with patience."""

from __future__ import annotations

from pacto_agent.lookout import LONGEST_GAP_SECONDS, Lookout
from pacto_agent.podmap import Place, PodMap

KNOWN = PodMap(places={"known": Place("known", netns=7, pids=(1,)), "empty": Place("empty")})


def test_nothing_is_due_while_every_pod_has_its_place() -> None:
    assert not Lookout().due({"known"}, KNOWN, since_resync=1000.0)


def test_a_pod_that_the_map_does_not_know_is_due_after_a_short_gap() -> None:
    lookout = Lookout()
    assert not lookout.due({"known", "new"}, KNOWN, since_resync=1.9)
    assert lookout.due({"known", "new"}, KNOWN, since_resync=2.0)


def test_a_pod_without_a_process_is_waited_for_longer_and_longer() -> None:
    lookout = Lookout()
    gaps = []
    for _ in range(8):
        gap = next(second for second in range(1, 200) if lookout.due({"empty"}, KNOWN, since_resync=second))
        gaps.append(gap)
    assert gaps == [2, 4, 8, 16, 32, 64, LONGEST_GAP_SECONDS, LONGEST_GAP_SECONDS]


def test_another_new_pod_starts_the_patience_again() -> None:
    lookout = Lookout()
    for second in (2.0, 4.0, 8.0):
        assert lookout.due({"empty"}, KNOWN, since_resync=second)
    assert lookout.due({"empty", "newer"}, KNOWN, since_resync=2.0)
