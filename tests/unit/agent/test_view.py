# SPDX-License-Identifier: MIT
"""The view of a node: listeners by their sockets in the order of events, coverage and its reasons."""

from __future__ import annotations

import pytest

from kubectl_pacto.model.node import Listener, PodReason
from pacto_agent.flows import ListenEvent, ListeningSocket, Sockets
from pacto_agent.podmap import Place, PodMap
from pacto_agent.view import View
from tests.unit.agent.made import (
    CGROUP,
    NETNS,
    NOW,
    OUTSIDE,
    listen,
    listening,
    mapped_view,
    one_pod_map,
    outbound,
    pod_map,
    pod_of,
    ports,
    sums,
    unlisten,
)


def resync(view: View, baseline: Sockets, *during: ListenEvent, at: float = NOW) -> None:
    """One resync of pod a, with events that come while its baseline is read."""
    view.begin_resync()
    view.set_map(view.pods)
    for event in during:
        view.apply_listen(event)
    view.end_resync({"a": baseline}, at)


def test_a_mapped_pod_with_a_baseline_is_complete() -> None:
    pod = pod_of(mapped_view(baseline=listening((1, 80))))
    assert (pod.complete, pod.reasons, pod.baseline_at) == (True, (), NOW)
    assert pod.listeners == (Listener("0.0.0.0", 80),)


def test_events_about_one_socket_repeated_change_nothing() -> None:
    view = mapped_view()
    for event in (listen(1), listen(1), listen(1)):
        assert view.apply_listen(event)
    assert ports(view) == [80]
    for event in (unlisten(1), unlisten(1)):
        assert view.apply_listen(event)
    assert ports(view) == []


def test_a_listener_is_removed_by_inode_alone() -> None:
    view = mapped_view()
    view.apply_listen(listen(1, 80))
    view.apply_listen(listen(2, 81))
    # neither port, nor cgroup, nor namespace of the end need be known
    view.apply_listen(unlisten(1, cgroup=0, netns=0))
    assert ports(view) == [81]


def test_a_socket_may_listen_again_on_another_port() -> None:
    view = mapped_view()
    for event in (listen(1, 80), unlisten(1), listen(1, 81)):
        view.apply_listen(event)
    assert ports(view) == [81]


def test_a_missed_end_is_healed_by_the_next_beginning() -> None:
    view = mapped_view()
    view.apply_listen(listen(1, 80))
    view.apply_listen(listen(1, 81))
    assert ports(view) == [81]


def test_siblings_on_one_port_are_one_listener_until_the_last_ends() -> None:
    view = mapped_view()
    for inode in (1, 2, 3):
        view.apply_listen(listen(inode, 80))
    for inode in (1, 3):
        view.apply_listen(unlisten(inode))
        assert ports(view) == [80]
    view.apply_listen(unlisten(2))
    assert ports(view) == []


@pytest.mark.parametrize(
    ("siblings", "told"),
    [((True, True), True), ((True, False), False), ((False, None), False), ((True, None), None)],
)
def test_siblings_serve_ipv4_as_soon_as_one_does_or_may(
    siblings: tuple[bool | None, ...], told: bool | None
) -> None:
    view = mapped_view()
    for inode, v6only in enumerate(siblings, 1):
        view.apply_listen(ListenEvent(CGROUP, NETNS, True, ListeningSocket(inode, "::", 80, v6only)))
    (listener,) = pod_of(view).listeners
    assert bool(listener.v6only) == bool(told)


def test_port_zero_asks_for_a_rescan_and_is_never_published() -> None:
    view = mapped_view()
    assert view.apply_listen(listen(1, 0))
    assert view.rescans == {"a"}
    assert ports(view) == []
    view.rescan({"a": listening((1, 40123))})
    assert view.rescans == set()
    assert ports(view) == [40123]
    view.apply_listen(unlisten(1))
    assert ports(view) == []


def test_port_zero_during_a_resync_takes_the_port_of_the_baseline() -> None:
    view = mapped_view()
    resync(view, listening((1, 40123)), listen(1, 0))
    assert ports(view) == [40123]


def test_a_rescan_takes_nothing_away_and_claims_no_coverage() -> None:
    view = mapped_view()
    view.apply_listen(listen(1, 80))
    view.note_loss()
    view.rescan({"a": listening((2, 81)), "gone": listening((3, 82))})
    assert ports(view) == [80, 81]
    assert pod_of(view).reasons == (PodReason.EVENTS_DROPPED,)


def test_a_baseline_heals_what_events_lost() -> None:
    view = mapped_view(baseline=listening((1, 80), (2, 81)))
    resync(view, listening((2, 81), (3, 82)))
    assert ports(view) == [81, 82]


def test_an_event_is_newer_than_a_baseline_that_was_being_read() -> None:
    view = mapped_view(baseline=listening((1, 80)))
    resync(view, listening((1, 80)), unlisten(1), listen(2, 81))
    assert ports(view) == [81]


def test_a_baseline_keeps_the_v6only_that_an_event_knew() -> None:
    view = mapped_view()
    view.apply_listen(ListenEvent(CGROUP, NETNS, True, ListeningSocket(1, "::", 80, False)))
    resync(view, Sockets((ListeningSocket(1, "::", 80),)))
    assert pod_of(view).listeners == (Listener("::", 80, v6only=False),)
    resync(view, Sockets((ListeningSocket(1, "::", 81),)))
    assert pod_of(view).listeners == (Listener("::", 81),), "another port: another listen()"


def test_an_abandoned_resync_changes_nothing() -> None:
    view = mapped_view(baseline=listening((1, 80)))
    view.begin_resync()
    view.apply_listen(unlisten(1))
    view.abandon_resync()
    resync(view, listening((1, 80)))
    assert ports(view) == [80], "what was touched then is not touched now"


def test_a_pod_without_a_baseline_is_not_mapped() -> None:
    view = View()
    view.set_map(one_pod_map())
    assert pod_of(view).reasons == (PodReason.NOT_MAPPED,)
    view.begin_resync()
    view.end_resync({}, NOW)
    assert pod_of(view).reasons == (PodReason.NOT_MAPPED,)


def test_a_pod_whose_last_process_ended_is_not_mapped_until_it_has_one() -> None:
    view = mapped_view(baseline=listening((1, 80)))
    view.set_map(one_pod_map(pids=()))
    assert pod_of(view).reasons == (PodReason.NOT_MAPPED,)
    view.set_map(one_pod_map())
    assert pod_of(view).complete


def test_a_changed_namespace_forgets_the_old_ones_sockets_until_the_next_baseline() -> None:
    view = mapped_view(baseline=listening((1, 80)))
    view.apply_connections(sums(succeeded=1), NOW)
    view.set_map(one_pod_map(netns=11))
    pod = pod_of(view)
    assert (pod.reasons, pod.listeners, pod.peers) == ((PodReason.NAMESPACE_CHANGED,), (), ())
    view.begin_resync()
    view.end_resync({"a": listening((2, 81))}, NOW + 60)
    assert pod_of(view).complete


def test_a_loss_counts_until_a_baseline_that_began_after_it() -> None:
    view = mapped_view()
    view.note_loss()
    assert pod_of(view).reasons == (PodReason.EVENTS_DROPPED,)
    view.begin_resync()
    view.note_loss()
    view.end_resync({"a": Sockets()}, NOW)
    assert pod_of(view).reasons == (PodReason.EVENTS_DROPPED,), "lost while it was read"
    resync(view, Sockets())
    assert pod_of(view).complete


def test_a_pod_that_no_baseline_reached_stays_degraded() -> None:
    view = mapped_view()
    view.note_loss()
    view.begin_resync()
    view.end_resync({}, NOW)
    assert pod_of(view).reasons == (PodReason.EVENTS_DROPPED,)


def test_a_host_network_pod_is_listed_without_sockets() -> None:
    place = Place("a", netns=1, pids=(1,), by_cgroup=True, host_network=True)
    view = mapped_view(pod_map([place]), listening((1, 80)))
    view.apply_listen(listen(2, 81, netns=1))
    pod = pod_of(view)
    assert (pod.reasons, pod.listeners, pod.peers) == ((PodReason.HOST_NETWORK,), (), ())


def test_pods_that_share_a_namespace_are_listed_without_sockets() -> None:
    places = [Place(uid, netns=10, pids=(1,), by_cgroup=True, shared=True) for uid in "ab"]
    view = mapped_view(pod_map(places), listening((1, 80)))
    assert [pod.reasons for pod in view.snapshot(NOW)] == [(PodReason.SHARED_NAMESPACE,)] * 2


def test_a_foreign_listener_is_counted_and_kept_out_of_every_baseline() -> None:
    view = mapped_view()
    assert view.apply_listen(listen(1, 15008, cgroup=OUTSIDE))
    assert view.foreign_events == 1
    for _ in range(3):
        resync(view, listening((1, 15008), (2, 80)))
        assert ports(view) == [80]
    view.apply_listen(unlisten(1, cgroup=OUTSIDE))
    resync(view, listening((1, 8080)))
    assert ports(view) == [8080], "the inode is another socket's by now"


def test_a_rescan_that_knows_who_made_a_listener_takes_no_foreign_one() -> None:
    view = mapped_view()
    foreign = ListeningSocket(1, "0.0.0.0", 15008, cgroup_id=OUTSIDE)
    view.begin_resync()
    view.rescan({"a": Sockets((foreign, ListeningSocket(2, "0.0.0.0", 80, cgroup_id=CGROUP)))})
    assert ports(view) == [80]
    view.end_resync({"a": Sockets()}, NOW)
    assert ports(view) == [80]


def test_a_foreign_listener_that_a_rescan_saw_first_goes_when_its_event_comes() -> None:
    view = mapped_view()
    view.rescan({"a": listening((1, 15008))})
    view.apply_listen(listen(1, 15008, cgroup=OUTSIDE))
    assert ports(view) == []


def test_a_foreign_listener_that_ended_unseen_is_forgotten() -> None:
    view = mapped_view()
    view.apply_listen(listen(1, 15008, cgroup=OUTSIDE))
    resync(view, Sockets())
    resync(view, listening((1, 80)))
    assert ports(view) == [80]


def test_a_baseline_that_knows_makers_keeps_foreign_sockets_out_by_itself() -> None:
    made = Sockets((ListeningSocket(1, "0.0.0.0", 15008, None, OUTSIDE), ListeningSocket(2, "0.0.0.0", 80)))
    assert ports(mapped_view(baseline=made)) == [80]


def test_foreign_connections_are_counted_and_no_peer() -> None:
    view = mapped_view()
    assert view.apply_connections(sums(succeeded=3, failed=2, aborted=1, cgroup=OUTSIDE), NOW)
    assert view.foreign_events == 6
    assert pod_of(view).peers == ()


def test_what_nothing_names_is_left_to_the_caller() -> None:
    view = mapped_view()
    assert not view.apply_listen(listen(1, cgroup=5, netns=5))
    assert not view.apply_connections(sums(succeeded=1, cgroup=5, netns=5), NOW)
    assert view.apply_listen(unlisten(1, cgroup=5, netns=5)), "an end needs no owner"


def test_a_pod_that_is_gone_takes_its_sockets_with_it() -> None:
    view = mapped_view(baseline=listening((1, 80)))
    view.set_map(PodMap())
    assert len(view.snapshot(NOW)) == 0
    view.set_map(one_pod_map())
    assert pod_of(view).reasons == (PodReason.NOT_MAPPED,)
    assert ports(view) == []


def test_open_connections_come_from_baselines_and_end_with_them() -> None:
    view = mapped_view(baseline=outbound(("10.0.0.1", 5432), ("10.0.0.1", 5432)))
    assert [(peer.open, peer.open_since) for peer in pod_of(view).peers] == [(2, NOW)]
    resync(view, outbound(("10.0.0.1", 5432)), at=NOW + 60)
    assert [(peer.open, peer.open_since) for peer in pod_of(view).peers] == [(1, NOW)]
    resync(view, Sockets(), at=NOW + 120)
    assert [(peer.open, peer.open_since) for peer in pod_of(view).peers] == [(0, None)]


def test_pods_are_published_in_the_order_of_their_uids() -> None:
    places = [Place(uid, netns=number, pids=(1,)) for number, uid in enumerate("cab", 10)]
    assert [pod.uid for pod in mapped_view(pod_map(places)).snapshot(NOW)] == ["a", "b", "c"]
