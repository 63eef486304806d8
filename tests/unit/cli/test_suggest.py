# SPDX-License-Identifier: MIT
"""suggest: what the kernel saw and no contract declares, with the provider's own ref and version."""

from __future__ import annotations

import json

import yaml

from tests.unit.cli.conftest import Plugin
from tests.unit.cli.fleet_scene import pacto


def test_a_patch_has_the_providers_ref_and_version(plugin: Plugin) -> None:
    audit = pacto("ops", "audit", "Compliant", contract={"serviceName": "audit", "version": "2.1.0"})
    plugin.api.add({**audit, "spec": {"contractRef": {"oci": "registry.example/ops/audit:2.1.0"}}})
    done = plugin("suggest", "orders", "-n", "shop")
    assert done.status == 0, done.err
    assert done.out.startswith("# to the contract of shop/orders\n")
    assert yaml.safe_load(done.out) == {
        "dependencies": [
            {
                "name": "audit",
                "ref": "oci://registry.example/ops/audit:2.1.0",
                "compatibility": "^2.1.0",
                "required": False,
            }
        ]
    }


def test_an_unknown_provider_leaves_the_ref_to_the_reader(plugin: Plugin) -> None:
    items = json.loads(plugin("suggest", "-A", "-o", "json").out)
    assert [item["pacto"] for item in items] == ["orders", "payments"]
    assert items[0]["patch"]["dependencies"][0]["ref"] == ""


def test_nothing_undeclared_is_said(plugin: Plugin) -> None:
    done = plugin("suggest", "inventory", "-n", "shop")
    assert (done.status, done.out, done.err) == (0, "", "no undeclared dependency was seen\n")
