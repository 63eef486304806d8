# SPDX-License-Identifier: MIT
"""The installed rights are enough: the operator as its own ServiceAccount, on what release_objects makes."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from kubectl_pacto.controller.manifests.operator_objects import release_objects
from tests.cluster.api import Api, ApiError, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.cluster_operator.access import await_rights
from tests.cluster_operator.conftest import AGENTS, OPERATORS, Operators
from tests.cluster_operator.machines import Machines
from tests.cluster_operator.test_scenarios import Scene

pytestmark = pytest.mark.cluster


def install(api: Api, values: dict[str, Any]) -> None:
    """Everything but the Deployment, which no machine here could run."""
    objects = release_objects(values, namespace=OPERATORS)
    api.apply(*[one for one in objects if one["kind"] != "Deployment"])
    await_rights(api, objects)


def as_operator(api_server: Live, folder: Path) -> str:
    """A kubeconfig of the operator's ServiceAccount."""
    config: Object = json.loads(api_server.kubeconfig.read_text())
    (folder / "token").write_text(api_server.token(OPERATORS, "pacto-operator"))
    config["users"][0]["user"] = {"tokenFile": str(folder / "token")}
    path = folder / "config"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.fixture
def scene(api: Api, machines: Machines, namespace: str, wait_for: WaitFor) -> Scene:
    """A namespace with nodes that report."""
    machines.frozen.clear()
    machines.skew = 0.0
    return Scene(api, namespace, wait_for)


@pytest.fixture
def restricted(api: Api, api_server: Live, operators: Operators, tmp_path: Path) -> Operators:
    """Operators with the rights of a release, and no others."""
    install(api, {"controller": {"kernelEvidence": {"namespace": AGENTS}}})
    operators.kubeconfig = as_operator(api_server, tmp_path)
    return operators


def test_the_rights_of_a_release_are_enough(
    scene: Scene, machines: Machines, restricted: Operators, shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    machines.says(shop, listens=[])
    scene.deploy(shop)
    with caplog.at_level(logging.INFO):
        restricted.start("--leader-elect", identity="as-account")
        scene.until(shop, "NonCompliant", "INTERFACE_ABSENT")
        scene.until_told("ValidationFailed")
        restricted.stop()
    refused = [line for line in caplog.messages if "not allowed" in line]
    # the namespace of an earlier test may still be on its way out
    assert [line for line in refused if "being terminated" not in line] == []


def test_the_account_may_do_nothing_else(api: Api, api_server: Live, namespace: str) -> None:
    install(api, {})
    account = api_server.as_token(api_server.token(OPERATORS, "pacto-operator"))
    for attempt in (
        lambda: account.items("v1", "Secret", namespace),
        lambda: account.items("v1", "ConfigMap", namespace),
        lambda: account.delete("v1", "Pod", "any", namespace),
        lambda: account.items("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ):
        with pytest.raises(ApiError) as caught:
            attempt()
        assert caught.value.status == 403
