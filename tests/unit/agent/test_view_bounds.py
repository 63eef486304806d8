# SPDX-License-Identifier: MIT
"""What a node's view holds at most, and that a pod past a bound says so."""

from __future__ import annotations

import pytest

from kubectl_pacto.model import bounds
from kubectl_pacto.model.node import PodReason
from pacto_agent.flows import ListeningSocket, Sockets
from pacto_agent.peers import Peers
from pacto_agent.podmap import Place
from pacto_agent.view import PEERS_BETWEEN_CUTS, SOCKETS_PER_POD, View
from tests.unit.agent.made import (
    CGROUP,
    NETNS,
    NOW,
    OUTSIDE,
    cut,
    listen,
    listening,
    mapped_view,
    outbound,
    pod_map,
    pod_of,
    ports,
    sums,
    unlisten,
)


def address(number: int) -> str:
    """A different peer for each number."""
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def many_pods(count: int) -> list[Place]:
    """So many pods, the oldest first."""
    return [
        Place(f"pod-{number:04}", netns=1000 + number, pids=(1,), started=number, by_cgroup=True)
        for number in range(count)
    ]


def test_a_pod_at_the_bound_of_listeners_is_complete_and_one_past_it_truncated() -> None:
    view = mapped_view()
    for inode in range(1, bounds.LISTENERS_PER_POD + 1):
        view.apply_listen(listen(inode, 1000 + inode))
    assert pod_of(view).complete
    view.apply_listen(listen(9999, 9999))
    pod = pod_of(view)
    assert pod.reasons == (PodReason.TRUNCATED,)
    assert len(pod.listeners) == bounds.LISTENERS_PER_POD
    view.apply_listen(unlisten(9999))
    assert pod_of(view).complete, "nothing was forgotten: the bound is on what is published"


def test_the_lowest_ports_are_published_of_too_many() -> None:
    view = mapped_view(baseline=listening(*((port, port) for port in range(200, 100, -1))))
    assert ports(view) == list(range(101, 101 + bounds.LISTENERS_PER_POD))


def test_siblings_on_one_port_do_not_fill_the_bound() -> None:
    view = mapped_view()
    for inode in range(1, 1001):
        view.apply_listen(listen(inode, 80))
    assert pod_of(view).complete
    assert ports(view) == [80]


def test_sockets_behind_listeners_are_bounded_until_a_baseline_finds_fewer() -> None:
    view = mapped_view()
    for inode in range(1, SOCKETS_PER_POD + 2):
        view.apply_listen(listen(inode, 80))
    assert pod_of(view).reasons == (PodReason.TRUNCATED,)
    view.begin_resync()
    view.end_resync({"a": listening((1, 80))}, NOW)
    assert pod_of(view).complete


def test_a_pod_at_the_bound_of_peers_is_complete_and_one_past_it_truncated_for_ten_minutes() -> None:
    view = mapped_view()
    for number in range(bounds.PEERS_PER_POD):
        view.apply_connections(sums(address(number), succeeded=1, at=NOW + number), NOW + number)
    assert pod_of(view, now=NOW + 128).complete
    cut_at = NOW + 200
    view.apply_connections(sums("192.0.2.1", succeeded=1, at=cut_at), cut_at)
    pod = pod_of(view, now=cut_at)
    assert pod.reasons == (PodReason.TRUNCATED,)
    assert len(pod.peers) == bounds.PEERS_PER_POD
    told = {peer.address for peer in pod.peers}
    assert address(0) not in told, "the one tried longest ago gave way"
    assert "192.0.2.1" in told
    view.prune(cut_at + bounds.PEER_RETENTION_SECONDS)
    assert pod_of(view, now=cut_at + bounds.PEER_RETENTION_SECONDS).complete


def test_open_peers_give_way_last() -> None:
    view = mapped_view(baseline=outbound(("192.0.2.1", 5432)))
    for number in range(bounds.PEERS_PER_POD + 50):
        view.apply_connections(sums(address(number), succeeded=1, at=NOW + 1 + number), NOW + 1 + number)
    assert "192.0.2.1" in {peer.address for peer in pod_of(view).peers}


def test_a_baseline_of_too_many_connections_is_cut_as_well() -> None:
    many = [(address(number), 5432) for number in range(bounds.PEERS_PER_POD + 1)]
    pod = pod_of(mapped_view(baseline=outbound(*many)))
    assert len(pod.peers) == bounds.PEERS_PER_POD
    assert pod.reasons == (PodReason.TRUNCATED,)


def test_the_nodes_bound_of_peers_takes_from_the_largest_pods() -> None:
    places = many_pods(40)
    view = mapped_view(pod_map(places))
    for number, _ in enumerate(places):
        count = bounds.PEERS_PER_POD if number < 33 else 5
        for peer in range(count):
            one = sums(address(peer), succeeded=1, at=NOW, cgroup=CGROUP + number, netns=1000 + number)
            view.apply_connections(one, NOW)
    view.prune(NOW)
    pods = view.snapshot(NOW)
    assert sum(len(pod.peers) for pod in pods) == bounds.PEERS_PER_NODE
    small, large = pods[33:], pods[:33]
    assert all(len(pod.peers) == 5 and pod.complete for pod in small)
    cut = [pod for pod in large if len(pod.peers) < bounds.PEERS_PER_POD]
    assert cut
    assert all(pod.reasons == (PodReason.TRUNCATED,) for pod in cut)
    assert all(pod.complete for pod in large if pod not in cut)


def test_a_node_at_the_bound_of_pods_is_whole_and_one_past_it_says_so() -> None:
    view = View()
    view.set_map(pod_map(many_pods(bounds.PODS_PER_NODE)))
    exceeded = [view.pod_limit_exceeded]
    view.set_map(pod_map(many_pods(bounds.PODS_PER_NODE + 1)))
    exceeded.append(view.pod_limit_exceeded)
    assert exceeded == [False, True]
    assert len(view.snapshot(NOW)) == bounds.PODS_PER_NODE


def test_known_pods_stay_when_too_many_come() -> None:
    places = many_pods(bounds.PODS_PER_NODE + 10)
    view = View()
    view.set_map(pod_map(places[10:]))
    view.set_map(pod_map(places))
    assert [pod.uid for pod in view.snapshot(NOW)] == [place.uid for place in places[10:]]


def test_a_pod_past_the_bound_of_pods_takes_no_sockets() -> None:
    places = many_pods(bounds.PODS_PER_NODE + 1)
    view = mapped_view(pod_map(places))
    last = len(places) - 1
    assert view.apply_listen(listen(1, 80, cgroup=CGROUP + last, netns=1000 + last))
    assert all(not pod.listeners for pod in view.snapshot(NOW))


def test_a_full_baseline_of_one_namespace_is_bounded() -> None:
    many = Sockets(tuple(ListeningSocket(inode, "0.0.0.0", inode) for inode in range(1, 60_000)))
    pod = pod_of(mapped_view(baseline=many))
    assert len(pod.listeners) == bounds.LISTENERS_PER_POD
    assert pod.reasons == (PodReason.TRUNCATED,)


def test_a_proxy_with_listeners_in_a_hundred_pods_namespaces_is_not_truncated_by_them() -> None:
    pods = [Place("proxy", netns=NETNS, pids=(1,), by_cgroup=True), *many_pods(100)]
    view = mapped_view(pod_map(pods))
    for number in range(100):
        view.apply_listen(listen(number + 1, 15008, cgroup=CGROUP, netns=1000 + number))
    published = {pod.uid: pod for pod in view.snapshot(NOW)}
    assert len(published) == 101
    assert all(pod.complete and pod.listeners == () for pod in published.values())
    assert view.foreign_events == 100


def test_a_pod_that_goes_through_all_ports_is_sorted_once_per_many_peers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuts: list[int] = []
    real = Peers.cut

    def cut(peers: Peers, limit: int, now: float) -> None:
        cuts.append(len(peers))
        real(peers, limit, now)

    monkeypatch.setattr(Peers, "cut", cut)
    view = mapped_view()
    cuts.clear()
    for port in range(1, 8193):
        view.apply_connections(sums(failed=1, port=port, at=NOW + port), NOW)
    assert len(cuts) <= 8192 / (PEERS_BETWEEN_CUTS - bounds.PEERS_PER_POD) + 1
    assert max(cuts) <= PEERS_BETWEEN_CUTS, "and it holds no more meanwhile"
    pod = pod_of(view)
    assert [peer.port for peer in pod.peers] == list(range(8193 - bounds.PEERS_PER_POD, 8193))
    assert pod.reasons == (PodReason.TRUNCATED,)


def test_a_pod_whose_connections_were_cut_is_truncated_for_as_long_as_a_peer_is_kept() -> None:
    view = mapped_view(pod_map([Place("a", netns=NETNS, pids=(1,)), Place("b", netns=NETNS + 1, pids=(2,))]))
    assert view.apply_cut(cut(1), NOW)
    assert pod_of(view).reasons == (PodReason.TRUNCATED,)
    assert pod_of(view, "b").complete, "another pod has nothing to do with it"
    later = NOW + bounds.PEER_RETENTION_SECONDS
    assert not pod_of(view, now=later - 1).complete
    assert pod_of(view, now=later).complete


def test_a_cut_of_an_earlier_namespace_of_that_number_is_not_this_pods() -> None:
    started = Place("a", netns=NETNS, pids=(1,), started_at=NOW - 10)
    view = mapped_view(pod_map([started]))
    assert not view.apply_cut(cut(at=NOW - 60), NOW), "nothing names it"
    assert pod_of(view).complete
    assert view.apply_cut(cut(at=NOW - 5), NOW)
    assert not pod_of(view).complete


def test_a_cut_of_a_node_proxy_inside_a_pods_namespace_is_foreign() -> None:
    view = mapped_view()
    assert view.apply_cut(cut(7, cgroup=OUTSIDE), NOW)
    assert view.foreign_events == 7
    assert pod_of(view).complete


def test_a_cut_that_nothing_names_says_so() -> None:
    view = mapped_view()
    assert not view.apply_cut(cut(cgroup=555, netns=555), NOW)
    assert pod_of(view).complete
