# SPDX-License-Identifier: MIT
"""Events that nothing names yet: looked up once more with the next map, then counted apart."""

from __future__ import annotations

from dataclasses import replace

from kubectl_pacto.model.node import PodReason
from pacto_agent.attribution import STRANGERS, WAITING_EVENTS, WAITING_OF_ONE, Attribution
from pacto_agent.podmap import Place, PodMap
from pacto_agent.view import View
from tests.unit.agent.made import (
    NETNS,
    NOW,
    cut,
    listen,
    mapped_view,
    one_pod_map,
    pod_map,
    pod_of,
    ports,
    sums,
    unlisten,
)

STRANGE = 555


def unmapped() -> tuple[View, Attribution]:
    """A view whose map knows nothing yet."""
    view = mapped_view(PodMap())
    return view, Attribution(view)


def remap(view: View, attribution: Attribution) -> None:
    """The next map, that knows pod a."""
    attribution.begin_map()
    view.set_map(one_pod_map())
    attribution.retry(NOW)


def test_events_of_a_new_pod_wait_for_its_map() -> None:
    view, attribution = unmapped()
    attribution.listens([listen(1, 80)])
    attribution.connections([sums(succeeded=2)], NOW)
    assert attribution.waiting
    remap(view, attribution)
    assert ports(view) == [80]
    assert pod_of(view).peers[0].succeeded == 2
    assert attribution.unattributed == 0
    assert not attribution.waiting


def test_a_listener_that_ended_while_it_waited_is_not_brought_back() -> None:
    view, attribution = unmapped()
    attribution.listens([listen(1, 80), listen(2, 81), unlisten(1)])
    remap(view, attribution)
    assert ports(view) == [81]


def test_the_last_event_of_a_socket_is_its_state() -> None:
    view, attribution = unmapped()
    attribution.listens([listen(1, 80), unlisten(1), listen(1, 82)])
    remap(view, attribution)
    assert ports(view) == [82]


def test_an_end_that_nothing_names_is_nobodys_and_not_counted() -> None:
    _, attribution = unmapped()
    attribution.listens([unlisten(1)])
    assert not attribution.waiting
    assert attribution.unattributed == 0


def test_what_the_next_map_does_not_know_is_counted_once_per_event() -> None:
    view, attribution = unmapped()
    attribution.listens([listen(1, cgroup=STRANGE, netns=STRANGE)])
    attribution.connections([sums(succeeded=2, failed=3, aborted=4, cgroup=STRANGE, netns=STRANGE)], NOW)
    assert attribution.unattributed == 0, "not before it was looked up again"
    remap(view, attribution)
    assert attribution.unattributed == 10


def test_a_stranger_is_not_waited_for_again() -> None:
    view, attribution = unmapped()
    attribution.connections([sums(succeeded=1, cgroup=STRANGE, netns=STRANGE)], NOW)
    remap(view, attribution)
    attribution.connections([sums(succeeded=1, cgroup=STRANGE, netns=STRANGE)], NOW)
    attribution.listens([listen(1, cgroup=STRANGE, netns=STRANGE)])
    assert not attribution.waiting, "another node's traffic must not make this one resync without end"
    assert attribution.unattributed == 3


def test_a_stranger_that_a_later_map_knows_is_named() -> None:
    view, attribution = unmapped()
    attribution.connections([sums(succeeded=1)], NOW)
    attribution.begin_map()
    attribution.retry(NOW)
    assert attribution.unattributed == 1
    remap(view, attribution)
    attribution.connections([sums(succeeded=1)], NOW)
    assert pod_of(view).peers[0].succeeded == 1


def test_events_that_wait_are_bounded() -> None:
    _, attribution = unmapped()
    attribution.connections(
        (sums(succeeded=1, cgroup=number) for number in range(2, WAITING_EVENTS + 7)), NOW
    )
    attribution.listens(listen(inode) for inode in range(1, WAITING_EVENTS + 8))
    assert attribution.unattributed == 12


def test_a_noisy_pod_that_no_map_knows_yet_leaves_room_for_other_new_ones() -> None:
    view, attribution = unmapped()
    noisy = [sums(port=number % 60_000, failed=1) for number in range(2 * WAITING_EVENTS)]
    attribution.connections(noisy, NOW)
    attribution.connections([sums(succeeded=3, cgroup=STRANGE, netns=STRANGE)], NOW)
    attribution.begin_map()
    attribution.connections(noisy, NOW)
    view.set_map(pod_map([Place("a", netns=NETNS, pids=(1,)), Place("b", netns=STRANGE, pids=(2,))]))
    attribution.retry(NOW)
    assert pod_of(view, "b").peers[0].succeeded == 3
    assert PodReason.TRUNCATED in pod_of(view, "a").reasons
    assert PodReason.TRUNCATED not in pod_of(view, "b").reasons
    assert (attribution.unattributed, attribution.waiting) == (0, False)


def test_a_pod_at_its_share_of_the_waiting_room_is_not_cut() -> None:
    for extra in (0, 1):
        view, attribution = unmapped()
        attribution.connections([sums(failed=1)] * (WAITING_OF_ONE + extra), NOW)
        remap(view, attribution)
        assert (PodReason.TRUNCATED in pod_of(view).reasons) == bool(extra)
        assert pod_of(view).peers[0].failed == WAITING_OF_ONE
        attribution.connections([sums(failed=1)], NOW)
        assert pod_of(view).peers[0].failed == WAITING_OF_ONE + 1


def test_a_cut_waits_for_the_map_that_names_it() -> None:
    view, attribution = unmapped()
    attribution.cuts([cut(5)], NOW)
    assert attribution.waiting
    attribution.begin_map()
    attribution.cuts([cut(6)], NOW)
    view.set_map(one_pod_map())
    attribution.retry(NOW)
    assert PodReason.TRUNCATED in pod_of(view).reasons
    assert (attribution.unattributed, attribution.waiting) == (0, False)


def test_a_cut_that_no_map_knows_is_counted_event_by_event_and_not_waited_for_again() -> None:
    view, attribution = unmapped()
    attribution.cuts([cut(5, cgroup=STRANGE, netns=STRANGE), cut(6, cgroup=STRANGE, netns=STRANGE)], NOW)
    remap(view, attribution)
    assert attribution.unattributed == 11
    attribution.cuts([cut(7, cgroup=STRANGE, netns=STRANGE)], NOW)
    assert (attribution.unattributed, attribution.waiting) == (18, False)
    assert PodReason.TRUNCATED not in pod_of(view).reasons


def test_cuts_that_wait_are_bounded() -> None:
    _, attribution = unmapped()
    for _ in range(2):
        attribution.cuts((cut(2, cgroup=number) for number in range(2, WAITING_EVENTS + 5)), NOW)
        attribution.begin_map()
    told, held = 2 * 2 * (WAITING_EVENTS + 3), 2 * WAITING_EVENTS
    assert attribution.unattributed == told - held


def test_another_pods_event_in_a_reused_namespace_waits_and_is_never_the_old_pods() -> None:
    view = mapped_view()
    attribution = Attribution(view)
    attribution.listens([listen(1, 80, cgroup=STRANGE)])
    attribution.connections([sums(succeeded=1, cgroup=STRANGE)], NOW)
    assert attribution.waiting
    assert (ports(view), pod_of(view).peers) == ([], ())
    attribution.begin_map()
    view.set_map(PodMap())
    attribution.retry(NOW)
    assert attribution.unattributed == 2


def test_the_next_pod_in_a_namespace_is_not_taken_for_the_last_by_a_map_that_is_too_old_for_it() -> None:
    # pod a was there when the processes were read; it ended, and another got its namespace's inode
    steady = replace(one_pod_map(), steady=frozenset(one_pod_map().owners))
    for early in (True, False):
        view = mapped_view()
        attribution = Attribution(view)
        if early:
            attribution.listens([listen(1, 80, cgroup=STRANGE)])
        attribution.begin_map()
        if not early:
            attribution.listens([listen(1, 80, cgroup=STRANGE)])
            attribution.connections([sums(succeeded=1, cgroup=STRANGE)], NOW)
        view.set_map(steady)
        attribution.retry(NOW)
        assert ports(view) == ([80] if early else []), "what came before is pod a's, a crashed container's"
        assert attribution.waiting == (not early)
        assert attribution.unattributed == 0
    attribution.begin_map()
    view.set_map(PodMap())
    attribution.retry(NOW)
    assert attribution.unattributed == 2


def test_strangers_are_bounded_and_the_last_ones_remembered() -> None:
    view, attribution = unmapped()
    for number in range(3 * STRANGERS):
        attribution.connections([sums(succeeded=1, cgroup=STRANGE + number, netns=STRANGE)], NOW)
        if number % 1000 == 0 or number == 3 * STRANGERS - 1:
            attribution.begin_map()
            attribution.retry(NOW)
            assert len(attribution._strangers) <= STRANGERS
    assert attribution.unattributed == 3 * STRANGERS
    attribution.connections([sums(succeeded=1, cgroup=STRANGE + 3 * STRANGERS - 1, netns=STRANGE)], NOW)
    waiting = attribution.waiting
    assert not waiting, "one of the last is known"
    attribution.connections([sums(succeeded=1, cgroup=STRANGE, netns=STRANGE)], NOW)
    assert attribution.waiting, "one of the first is looked up again"
    assert len(view.snapshot(NOW)) == 0
