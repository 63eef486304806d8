# SPDX-License-Identifier: MIT
"""An upgrade on a real cluster: no wave of Unknown, no false word, nothing lost that was known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from kubectl_pacto import __version__
from kubectl_pacto.controller.manifests.operator_objects import crds
from tests.acceptance import expect
from tests.acceptance.release import PluginFailed
from tests.acceptance.watcher import Seen
from tests.cluster.api import Object
from tests.images import previous, runtime
from tests.upgrade.apps import APPS, CODE, GUILTY, QUIET
from tests.upgrade.conftest import STALE_SECONDS, Picture, Story
from tests.upgrade.lookout import Lookout, image_of, longest_silence, together, unknown

pytestmark = pytest.mark.cluster
# the operator looks at each Pacto every few seconds here; then the status is written and told
NOTICED_SECONDS = 6.0


def told(story: Story, name: str) -> list[Seen]:
    """All that a Pacto's status said from just before the upgrade to its end."""
    key = (story.ground.scene.namespace, name)
    return [one for one in story.ground.world.watcher.history(key, story.begun) if one.at <= story.ended]


def after(story: Story) -> Picture:
    """What was there in the end."""
    assert story.after is not None
    return story.after


def test_before_it_the_previous_release_ran(story: Story) -> None:
    assert story.before.record["version"] == story.release.version
    assert {image_of(pod) for pod in story.before.agents} == {previous.NAME}
    versions = {view["node"]["agentVersion"] for view in story.before.views.values()}
    assert versions == {story.release.version}


def test_when_the_command_ends_every_agent_is_of_this_release(story: Story) -> None:
    assert story.returned is not None
    assert [image_of(pod) for pod in story.returned.agents] == [runtime.NAME] * len(story.live.nodes)
    assert story.returned.record["version"] == __version__
    digests = [
        {pod["status"]["containerStatuses"][0]["imageID"] for pod in one.agents}
        for one in (story.before, after(story))
    ]
    assert all(len(one) == 1 for one in digests)
    assert digests[0].isdisjoint(digests[1])


def test_one_node_after_the_other_and_not_before_the_first_reports(story: Story) -> None:
    old = {node: view["collection"]["startedAt"] for node, view in story.before.views.items()}
    for moment in story.moments:
        replaced = [node for node, one in moment.nodes.items() if not one.runs(previous.NAME)]
        silent = [node for node in replaced if moment.nodes[node].started == old[node]]
        assert len(silent) <= 1, f"{moment.at - story.begun:.1f} s: no agent reports from {silent}"


def test_nobody_is_unknown_while_heartbeats_are_good(story: Story) -> None:
    """No agent is away for longer than a heartbeat is good for, or only its own node's Pactos say so."""
    spans = {name: unknown(told(story, name), story.begun, story.ended) for name in APPS}
    silences = {node: longest_silence(story.moments, node) for node in story.live.nodes}
    print(f"upgrade took {story.took:.0f} s; longest silence {silences}; Unknown {spans}")
    for name, (number, _) in APPS.items():
        allowed = max(0.0, silences[story.live.nodes[number]] - STALE_SECONDS) + NOTICED_SECONDS
        if silences[story.live.nodes[number]] < STALE_SECONDS:
            assert spans[name] == [], f"{name}: {changes(story, name)}"
        assert sum(end - begin for begin, end in spans[name]) <= allowed, changes(story, name)
    here, there = ([name for name, (number, _) in APPS.items() if number == one] for one in (0, 1))
    both = {(a, b): together(spans[a], spans[b]) for a in here for b in there}
    assert not any(both.values()), both


def test_nobody_is_wronged_and_the_guilty_stay_so(story: Story) -> None:
    for name in APPS:
        seen = told(story, name)
        assert len(seen) > 1, f"{name} was not checked meanwhile"
        for one in seen:
            errors = {item["code"] for item in one.status["findings"] if item["severity"] == "error"}
            assert errors <= ({CODE} if name in GUILTY else set()), expect.summary(one.status)
            if name in GUILTY:
                assert one.status["contractStatus"] in ("NonCompliant", "Unknown"), changes(story, name)
    wrong = story.ground.wrong()
    assert wrong == {}


def changes(story: Story, name: str) -> str:
    """What a status said, each time that it said something else."""
    words = [(one.at - story.begun, expect.summary(one.status)) for one in told(story, name)]
    kept = words[:1] + [now for before, now in pairwise(words) if before[1] != now[1]]
    return "; ".join(f"{at:.1f} s {text}" for at, text in kept)


def test_the_kernel_vouches_for_them_as_before(story: Story) -> None:
    """And says so of the same objects: the first step of the scenario asked the same of the old release."""
    for name, wanted in story.ground.scenario.steps[0].expect.items():
        if wanted.evidence:
            story.ground.scene._await_evidence(name, wanted)


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all fields of a schema."""
    for name, one in (schema.get("properties") or {}).items():
        yield f"{path}.{name}"
        yield from fields(one, f"{path}.{name}")
    if isinstance(schema.get("items"), Mapping):
        yield from fields(schema["items"], f"{path}[]")


def of_crd(crd: Object) -> set[str]:
    """The paths of all fields of a CRD's only version."""
    (version,) = crd["spec"]["versions"]
    return set(fields(version["schema"]["openAPIV3Schema"]))


def test_the_crds_have_all_fields_of_this_release(story: Story) -> None:
    for crd in crds():
        name = crd["spec"]["names"]["plural"]
        assert of_crd(after(story).crds[name]) == of_crd(crd), name
    if story.release.version == previous.STAND_IN:
        path = f".collection.{previous.LACKING}"
        kind = "noderuntimeobservations"
        assert of_crd(after(story).crds[kind]) - of_crd(story.before.crds[kind]) == {path}
        for node in story.live.nodes:
            assert previous.LACKING not in story.before.views[node]["collection"]
            assert previous.LACKING in after(story).views[node]["collection"]


def peers(view: Object, pods: set[str]) -> dict[tuple[str, str, int], Object]:
    """The peers of these of a node's pods, by pod, address and port."""
    return {
        (pod["uid"], peer["address"], peer["port"]): peer
        for pod in view["pods"]
        if pod["uid"] in pods
        for peer in pod.get("peers", ())
    }


def test_new_agents_go_on_where_the_old_ones_ended(story: Story) -> None:
    scene = story.ground.scene
    pods = {name: {pod["metadata"]["uid"] for pod in scene.pods(name)} for name in ("shop", QUIET)}
    found = 0
    for node, old in story.before.views.items():
        new = after(story).views[node]
        assert new["node"]["bootID"] == old["node"]["bootID"]
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        assert new["node"]["agentVersion"] == __version__
        assert new["collection"]["startedAt"] > old["collection"]["startedAt"]
        assert new["collection"]["state"] == "Running"
        known = peers(new, set().union(*pods.values()))
        for key, peer in peers(old, set().union(*pods.values())).items():
            found += 1
            assert known[key]["lastSuccess"] >= peer["lastSuccess"], key
    assert found == len(pods)
    node = story.live.nodes[APPS[QUIET][0]]
    (then,), (now,) = (peers(one.views[node], pods[QUIET]).values() for one in (story.before, after(story)))
    # nobody but the agent before could have seen it
    assert now["lastSuccess"] == then["lastSuccess"]


def test_a_release_whose_agents_end_stops_at_the_first_node(story: Story) -> None:
    """Its other nodes keep their agents and verdicts; what the plugin says names the pod."""
    live, plugin = story.live, story.ground.world.plugin
    live.load(previous.broken(story.folder))
    begun = time.monotonic()
    with Lookout(live) as lookout, story.ground.poked():
        with pytest.raises(
            PluginFailed, match=r"daemonset\.apps/pacto-node-agent.*pod pacto-node-agent-\w+ on"
        ):
            plugin.run("upgrade", *story.values(runtime.NAME, previous.BROKEN), "--timeout", "45s")
        plugin.run("upgrade", *story.values(runtime.NAME), "--timeout", "120s")
    hit = {
        node
        for moment in lookout.moments
        for node, one in moment.nodes.items()
        if any(image == previous.BROKEN for _, image, _ in one.agents)
    }
    assert len(hit) == 1, sorted(hit)
    scene, ended = story.ground.scene, time.monotonic()
    for name, (number, _) in APPS.items():
        seen = story.ground.world.watcher.history((scene.namespace, name), begun)
        if story.live.nodes[number] not in hit:
            assert unknown(seen, begun, ended) == [], name
        said = {one.status["contractStatus"] for one in seen}
        assert not (name in GUILTY and "Compliant" in said)
        assert name in GUILTY or "NonCompliant" not in said
    story.ground.calm(ended)
