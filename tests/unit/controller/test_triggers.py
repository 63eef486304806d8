# SPDX-License-Identifier: MIT
"""Which Pactos a change is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubectl_pacto.controller.triggers import Triggers
from kubectl_pacto.kube.reflector import Key
from kubectl_pacto.model.pacto import Pacto, Published

SHOP = Pacto("ns", "shop", generation=1, service="shop-svc", workload_name="shop-deploy")
OTHER = replace(SHOP, namespace="other")


class Seen:
    """Triggers, and what they asked for."""

    def __init__(self, *pactos: Pacto) -> None:
        self.keys: list[Key] = []
        self.triggers = Triggers(self.keys.append)
        for pacto in pactos:
            self.triggers.pacto_changed((pacto.namespace, pacto.name), None, pacto)
        self.first = list(self.keys)
        self.keys.clear()


def test_every_pacto_is_checked_when_it_appears() -> None:
    assert Seen(SHOP, OTHER).first == [("ns", "shop"), ("other", "shop")]


@pytest.mark.parametrize("kind", ["Service", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob"])
@pytest.mark.parametrize("name", ["shop-svc", "shop-deploy"])
def test_an_object_of_the_targets_name_in_its_namespace(kind: str, name: str) -> None:
    seen = Seen(SHOP, OTHER)
    seen.triggers.object_changed(kind, ("ns", name))
    assert seen.keys == [("ns", "shop")]


@pytest.mark.parametrize("kind", ["Pod", "EndpointSlice", "ConfigMap", "Lease", "NodeRuntimeObservation"])
def test_other_kinds_trigger_nothing(kind: str) -> None:
    seen = Seen(SHOP)
    seen.triggers.object_changed(kind, ("ns", "shop-svc"))
    assert seen.keys == []


def test_another_name_triggers_nothing() -> None:
    seen = Seen(SHOP)
    seen.triggers.object_changed("Service", ("ns", "else"))
    assert seen.keys == []


def test_a_status_write_does_not_trigger_but_a_new_generation_does() -> None:
    seen = Seen(SHOP)
    key = ("ns", "shop")
    written = replace(SHOP, status={"contractStatus": "Compliant"})
    seen.triggers.pacto_changed(key, SHOP, written)
    assert seen.keys == []
    seen.triggers.pacto_changed(key, written, replace(written, generation=2))
    assert seen.keys == [key]


def test_a_target_that_moved_is_found_under_its_new_name_alone() -> None:
    seen = Seen(SHOP)
    moved = replace(SHOP, service="new", generation=2)
    seen.triggers.pacto_changed(("ns", "shop"), SHOP, moved)
    seen.keys.clear()
    seen.triggers.object_changed("Service", ("ns", "shop-svc"))
    assert seen.keys == []
    seen.triggers.object_changed("Service", ("ns", "new"))
    assert seen.keys == [("ns", "shop")]


@pytest.mark.parametrize(
    "published", [Published("db", "1.0.0"), Published("x", "1.0.0", "oci://r.example/db:1.0.0")]
)
def test_what_a_provider_publishes_triggers_its_dependents(published: Published) -> None:
    shop = replace(SHOP, status={"dependencies": [{"name": "db", "ref": "oci://r.example/db"}]})
    database = Pacto("data", "db", generation=1, service="db")
    seen = Seen(shop, database)
    seen.triggers.pacto_changed(("data", "db"), database, replace(database, published=published))
    assert seen.keys == [("ns", "shop")]


def test_a_pacto_that_went_leaves_nothing_behind() -> None:
    seen = Seen(SHOP)
    seen.triggers.pacto_changed(("ns", "shop"), SHOP, None)
    assert seen.keys == [("ns", "shop")]
    seen.keys.clear()
    seen.triggers.object_changed("Service", ("ns", "shop-svc"))
    assert seen.keys == []
    assert not seen.triggers._by_target
