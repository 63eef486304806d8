# SPDX-License-Identifier: MIT
"""An upgrade brings CRDs up to date: what the old one dropped is kept afterwards, and every Pacto with it."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.controller.manifests import operator_objects
from tests.cluster_chart.conftest import Installers
from tests.support.helm import CHART, NAMESPACE, RELEASE

pytestmark = pytest.mark.cluster
PACTO = ("pacto.trianalab.io/v1alpha1", "Pacto")
CONTRACT = 'pactoVersion: "2.0"\nservice: {name: shop, version: 1.0.0}\n'


def old_crds(ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CRDs of a version that did not know the interval yet."""
    found = copy.deepcopy(ours)
    for crd in found:
        if crd["spec"]["names"]["kind"] == "Pacto":
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            assert schema["properties"]["spec"]["properties"].pop("checkIntervalSeconds")
    return found


def old_chart(folder: Path) -> Path:
    """The chart with those CRDs."""
    shutil.copytree(CHART, folder / "old")
    for crd in old_crds(operator_objects.crds()):
        crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        path = folder / "old" / "templates" / "crds" / f"{crd['spec']['names']['plural']}.yaml"
        assert path.exists()
        path.write_text(yaml.safe_dump(crd))
    return folder / "old"


def pacto(name: str) -> dict[str, Any]:
    """A Pacto with the field."""
    spec = {"contractRef": {"inline": CONTRACT}, "checkIntervalSeconds": 60}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": PACTO[0], "kind": PACTO[1], "metadata": metadata, "spec": spec}


def interval(installers: Installers, name: str) -> int | None:
    """What the server has kept of it."""
    found = installers.live.api.get(*PACTO, name, "default")
    assert found is not None
    kept: int | None = found["spec"].get("checkIntervalSeconds")
    return kept


def upgraded(installers: Installers, upgrade: Callable[[], object], remove: Callable[[], object]) -> None:
    """The old CRD drops the field, the new one keeps it, and both Pactos outlive the release."""
    api = installers.live.api
    create(installers, "before")
    assert interval(installers, "before") is None
    upgrade()
    # the server takes a moment to serve a schema that it has accepted
    api.create(pacto("after"))
    installers.wait_for(
        lambda: api.replace(kept(installers, "after")) and interval(installers, "after") == 60, 90
    )
    # what was dropped is lost: the server fills in the new field's default
    assert interval(installers, "before") == 300
    assert api.replace(kept(installers, "before"))["spec"]["checkIntervalSeconds"] == 60
    remove()
    assert interval(installers, "before") == interval(installers, "after") == 60


def create(installers: Installers, name: str) -> None:
    """Create a Pacto, once its kind is served."""
    installers.live.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    installers.wait_for(lambda: installers.live.api.create(pacto(name)), 90, "Pactos are served")


def kept(installers: Installers, name: str) -> dict[str, Any]:
    """The Pacto as it is there, with the field."""
    found = installers.live.api.get(*PACTO, name, "default")
    assert found is not None
    found["spec"]["checkIntervalSeconds"] = 60
    return found


def test_helm_brings_crds_up_to_date_and_keeps_them(installers: Installers, tmp_path: Path) -> None:
    installers.install(chart=old_chart(tmp_path))
    upgraded(
        installers,
        upgrade=installers.upgrade,
        remove=lambda: installers.helm("uninstall", RELEASE, "-n", NAMESPACE, "--wait"),
    )


def test_the_plugin_brings_crds_up_to_date_and_keeps_them(
    installers: Installers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = operator_objects.crds()
    with monkeypatch.context() as before:
        before.setattr(operator_objects, "crds", lambda: old_crds(ours))
        installers.plugin("install", "--no-wait")
    upgraded(
        installers,
        upgrade=lambda: installers.plugin("upgrade", "--no-wait"),
        remove=lambda: installers.plugin("uninstall", "--yes"),
    )


def test_crds_that_may_go_take_every_pacto_along(installers: Installers) -> None:
    installers.install("--set", "crds.keep=false")
    create(installers, "before")
    installers.helm("uninstall", RELEASE, "-n", NAMESPACE, "--wait")
    installers.wait_for(lambda: installers.crd("pactos") is None, 90, "the CRD is gone")
