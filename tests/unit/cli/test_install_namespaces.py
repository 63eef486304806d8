# SPDX-License-Identifier: MIT
"""Namespaces: one that was there keeps its Pod Security level and stays; only our own are made privileged."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_pacto.cli.install import wait
from tests.unit.cli.conftest import Plugin
from tests.unit.cli.test_install import prepare

Raw = dict[str, Any]
ENFORCE = "pod-security.kubernetes.io/enforce"
OWN = "/api/v1/namespaces/pacto-operator-system"
AGENTS = "/api/v1/namespaces/pacto-node-agent"


@pytest.fixture
def cluster(bare: Plugin, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """An empty cluster that can take an installation."""
    prepare(bare.api)
    monkeypatch.setattr(wait, "POLL_SECONDS", 0.01)
    return bare


def add(plugin: Plugin, name: str, **labels: str) -> None:
    """A namespace of somebody's."""
    named = {key.replace("_", "-"): value for key, value in labels.items()}
    plugin.api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": named}})


def level(plugin: Plugin, path: str) -> str | None:
    """The level that a namespace enforces."""
    found: str | None = plugin.api.objects[path]["metadata"].get("labels", {}).get(ENFORCE)
    return found


@pytest.mark.parametrize("labels", [{}, {ENFORCE: "baseline"}, {ENFORCE: "privileged"}])
def test_a_namespace_that_is_there_keeps_its_own_level(cluster: Plugin, labels: dict[str, str]) -> None:
    add(cluster, "pacto-operator-system", team="a", **labels)
    before = cluster.api.objects[OWN]["metadata"]["labels"]
    for command in (["install"], ["install"], ["upgrade", "--enable-probing"]):
        done = cluster(*command)
        assert done.status == 0, done.err
        assert "namespace/pacto-operator-system unchanged" in done.out
    assert cluster.api.objects[OWN]["metadata"]["labels"] == before
    assert cluster("uninstall", "--yes").status == 0
    assert OWN in cluster.api.objects


def test_a_namespace_that_is_made_is_restricted_and_a_level_changed_later_stays(cluster: Plugin) -> None:
    assert "namespace/pacto-operator-system created" in cluster("install").out
    assert level(cluster, OWN) == "restricted"
    cluster.api.objects[OWN]["metadata"]["labels"][ENFORCE] = "baseline"
    assert cluster("upgrade", "--enable-probing").status == 0
    assert level(cluster, OWN) == "baseline"
    assert cluster("uninstall", "--yes").status == 0
    assert OWN not in cluster.api.objects


@pytest.mark.parametrize("enforced", ["baseline", "restricted"])
def test_a_namespace_of_somebody_is_never_made_privileged(cluster: Plugin, enforced: str) -> None:
    add(cluster, "monitoring", **{ENFORCE: enforced})
    done = cluster("install", "--node-agent", "--set", "nodeAgent.namespace=monitoring")
    assert done.status == 1
    assert f"namespace/monitoring is there already, with Pod Security level {enforced}" in done.err
    assert "nodeAgent.namespace" in done.err
    assert not cluster.api.writes


def test_an_agents_namespace_made_before_is_used_as_it_is_and_stays(cluster: Plugin) -> None:
    assert cluster("install").status == 0
    add(cluster, "pacto-node-agent", **{ENFORCE: "privileged"})
    before = cluster.api.objects[AGENTS]["metadata"]["labels"]
    done = cluster("upgrade", "--node-agent", "--no-wait")
    assert done.status == 0, done.err
    assert cluster.api.objects[AGENTS]["metadata"]["labels"] == before
    done = cluster("upgrade", "--no-node-agent", "--no-wait")
    assert "role.rbac.authorization.k8s.io/pacto-node-agent deleted" in done.out
    assert AGENTS in cluster.api.objects
    assert cluster("uninstall", "--yes").status == 0
    assert AGENTS in cluster.api.objects


def test_our_own_agents_namespace_gets_its_level_back(cluster: Plugin) -> None:
    assert cluster("install", "--node-agent", "--no-wait").status == 0
    cluster.api.objects[AGENTS]["metadata"]["labels"][ENFORCE] = "restricted"
    done = cluster("install", "--no-wait", "--force-conflicts")
    assert "namespace/pacto-node-agent configured" in done.out
    assert level(cluster, AGENTS) == "privileged"


def test_a_difference_leaves_out_a_namespace_that_stays(cluster: Plugin) -> None:
    add(cluster, "pacto-operator-system", team="a")
    done = cluster("install", "--dry-run", "server", "--diff")
    assert done.status == 0, done.err
    assert "pod-security" not in done.out


def test_what_an_installation_that_broke_off_made_is_ours(
    cluster: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = cluster.api.answer

    def refuse(method: str, path: str, accept: str, body: Raw | None) -> tuple[int, Any]:
        if method == "PATCH" and "/deployments/" in path:
            return 403, {"kind": "Status", "message": "not yet"}
        return answer(method, path, accept, body)

    with monkeypatch.context() as broken:
        broken.setattr(cluster.api, "answer", refuse)
        assert cluster("install", "--node-agent").status == 1
    assert OWN in cluster.api.objects
    assert cluster("install", "--node-agent", "--no-wait").status == 0
    assert cluster("uninstall", "--yes").status == 0
    assert not {OWN, AGENTS} & cluster.api.objects.keys()
