# SPDX-License-Identifier: MIT
"""The operator between a real API server and a real registry: revisions, pull secrets, and a registry that
stops in the middle."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_pacto.collect.credentials import Credentials
from tests.cluster.api import Api, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster_operator.conftest import Operators
from tests.cluster_registry.test_real_registry import push, running
from tests.support.bundles import archive

pytestmark = pytest.mark.cluster
GROUP = "pacto.trianalab.io/v1alpha1"
ME = Credentials("me", "secret")


def bundle(version: str, **files: bytes) -> bytes:
    """The layer of a contract of this version."""
    text = f"pactoVersion: '2.0'\nservice: {{name: shop, version: {version}}}\n"
    return archive({"pacto.yaml": text.encode(), **files})


class Scene:
    """One namespace with Pactos that only refer to contracts, and a registry that wants a password."""

    def __init__(
        self, api: Api, namespace: str, wait_for: WaitFor, host: str, process: subprocess.Popen[bytes]
    ) -> None:
        self.api, self.namespace, self.wait_for = api, namespace, wait_for
        self.host, self.process = host, process

    def push(self, version: str, layer: bytes | None = None) -> None:
        """A tag means a bundle from now on."""
        push(self.host, "team/shop", [version], ME, layer or bundle(version))

    def secret(self, password: str) -> None:
        """The pull secret, written or changed."""
        metadata = {"name": "pull", "namespace": self.namespace}
        data = {"username": "me", "password": password, "registry": self.host}
        self.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})

    def pacto(self, name: str, source: Object) -> None:
        """A Pacto without a target."""
        metadata = {"name": name, "namespace": self.namespace}
        self.api.create(
            {"apiVersion": GROUP, "kind": "Pacto", "metadata": metadata, "spec": {"contractRef": source}}
        )

    def status(self, name: str = "shop") -> Object:
        """The status of a Pacto."""
        found: Object = (self.api.get(GROUP, "Pacto", name, self.namespace) or {}).get("status") or {}
        return found

    def until(self, contract_status: str, name: str = "shop", timeout: float = 120) -> None:
        """Wait for a verdict."""
        self.wait_for(
            lambda: self.status(name).get("contractStatus") == contract_status,
            timeout,
            f"{name} to be {contract_status}, last: {self.status(name)}",
        )

    def revisions(self) -> dict[str, str]:
        """The tags that revisions are of, by their names."""
        return {
            raw["metadata"]["name"]: raw["spec"]["source"]["oci"].rpartition(":")[2]
            for raw in self.api.items(GROUP, "PactoRevision", self.namespace)
            if raw.get("status", {}).get("resolved")
        }

    def told(self) -> list[str]:
        """The reasons of all events."""
        return [one["reason"] for one in self.api.items("v1", "Event", self.namespace)]


@pytest.fixture
def scene(
    api: Api, namespace: str, wait_for: WaitFor, operators: Operators, tmp_path: Path
) -> Iterator[Scene]:
    with running(tmp_path, has_password=True) as (host, process):
        operators.changes |= {
            "mirror_interval": 1.0, "secret_interval": 0.5, "insecure_registries": (host,),
        }  # fmt: skip
        yield Scene(api, namespace, wait_for, host, process)
        operators.stop()  # before the registry that it asks


def test_from_a_wrong_password_to_a_tag_that_is_overwritten(scene: Scene, operators: Operators) -> None:
    scene.push("1.0.0")
    scene.push("1.1.0")
    scene.secret("wrong")
    source = {"oci": f"oci://{scene.host}/team/shop", "pullSecretRef": "pull"}
    scene.pacto("shop", source)
    operators.start()
    scene.until("Unknown")
    # a registry that takes its time over a password is waited for at first, and that is said
    scene.wait_for(lambda: "refuses" in str(scene.status()), 60, "the refusal")
    scene.secret("secret")  # nothing but this has it checked again before five minutes are over
    scene.until("Reference")
    assert scene.status()["contract"]["resolvedRef"] == f"{scene.host}/team/shop:1.1.0"
    scene.wait_for(lambda: sorted(scene.revisions().values()) == ["1.0.0", "1.1.0"], 90, "both revisions")
    current = scene.status()["currentRevision"]
    assert scene.revisions()[current] == "1.1.0"
    for name in scene.revisions():
        scene.api.delete(GROUP, "PactoRevision", name, scene.namespace)
    scene.wait_for(lambda: sorted(scene.revisions().values()) == ["1.0.0", "1.1.0"], 90, "them once more")
    scene.push("1.0.0", bundle("1.0.0", **{"README.md": b"another artifact"}))
    scene.wait_for(lambda: "TagOverwritten" in scene.told(), 90, "the tag to be told")
    scene.wait_for(lambda: len(scene.revisions()) == 3, 90, "its revision")
    time.sleep(2.5)
    assert scene.told().count("TagOverwritten") == 1
    scene.api.delete(GROUP, "Pacto", "shop", scene.namespace)
    scene.wait_for(lambda: not scene.revisions(), 180, "its revisions to go with it")


def test_a_registry_that_stops_delays_and_changes_no_verdict(scene: Scene, operators: Operators) -> None:
    scene.push("1.0.0")
    scene.secret("secret")
    source = {"oci": f"oci://{scene.host}/team/shop:1.0.0", "pullSecretRef": "pull"}
    scene.pacto("shop", source)
    operators.start("--workers=1")
    scene.until("Reference")
    scene.process.send_signal(signal.SIGSTOP)  # it accepts connections, and says nothing
    for number in range(5):
        scene.pacto(f"waits-{number}", source)
    inline = "pactoVersion: '2.0'\nservice: {name: inline, version: 1.0.0}\n"
    began = time.monotonic()
    scene.pacto("inline", {"inline": inline})
    scene.until("Reference", "inline", timeout=8)
    assert time.monotonic() - began < 8  # one request to that registry takes ten seconds
    change = {"metadata": {"annotations": {"a": "b"}}, "spec": {"checkIntervalSeconds": 40}}
    scene.api.patch(GROUP, "Pacto", "shop", change, scene.namespace)  # has it checked
    scene.wait_for(lambda: scene.status().get("observedGeneration") == 2, 20, "it to be checked")
    assert scene.status()["contractStatus"] == "Reference"
    for number in range(5):  # also those whose turn has not come yet
        scene.until("Unknown", f"waits-{number}", timeout=8)
    assert any(f"waiting for {scene.host}" in str(scene.status(f"waits-{number}")) for number in range(5))
    scene.process.send_signal(signal.SIGCONT)
    for number in range(5):
        scene.until("Reference", f"waits-{number}", timeout=180)
