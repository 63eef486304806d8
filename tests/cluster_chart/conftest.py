# SPDX-License-Identifier: MIT
"""helm and the plugin against the cluster, and what is there after either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubectl_pacto.cli.main import main
from kubectl_pacto.controller.manifests.operator_objects import crds
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.support.helm import CHART, NAMESPACE, RELEASE, Helm, require_helm

Plugin = Callable[..., str]
CRD_API = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@dataclass(frozen=True)
class Installers:
    """Both ways to the same release, in a cluster that has neither it nor its CRDs."""

    live: Live
    helm: Helm
    plugin: Plugin
    wait_for: WaitFor

    def install(self, *words: str | Path, chart: Path = CHART) -> str:
        """helm install."""
        return self.helm("install", RELEASE, chart, "-n", NAMESPACE, "--create-namespace", *words)

    def upgrade(self, *words: str | Path, chart: Path = CHART) -> str:
        """helm upgrade."""
        return self.helm("upgrade", RELEASE, chart, "-n", NAMESPACE, *words)

    def gone(self, *names: str) -> bool:
        """Whether these namespaces are gone."""
        return not any(self.live.api.get("v1", "Namespace", name) for name in names)

    def sweep(self) -> None:
        """Take away whatever a release leaves, of either."""
        if self.live.api.get("v1", "Namespace", NAMESPACE):
            self.helm("uninstall", RELEASE, "-n", NAMESPACE, "--ignore-not-found", "--wait")
        main(["uninstall", "--yes", "--delete-crds", "--timeout", "180s"])
        left = [NAMESPACE, "pacto-node-agent", "agents"]
        for name in left:
            self.live.api.delete("v1", "Namespace", name)
        for crd in crds():
            self.live.api.delete(*CRD_API, crd["metadata"]["name"])
        self.wait_for(lambda: self.gone(*left), 180, "the release's namespaces are gone")
        self.wait_for(lambda: not any(self.crd(name) for name in PLURALS), 90, "the CRDs are gone")

    def crd(self, plural: str) -> dict[str, object] | None:
        """One of our CRDs."""
        return self.live.api.get(*CRD_API, f"{plural}.pacto.trianalab.io")


PLURALS = ("pactos", "pactorevisions", "noderuntimeobservations")


@pytest.fixture
def installers(
    api_server: Live,
    wait_for: WaitFor,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Installers]:
    """helm and the plugin as the cluster's administrator; the cluster is as before afterwards."""
    require_helm("cluster")
    kubeconfig = str(api_server.provider.kubeconfig)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)

    def plugin(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        done = main(words)
        out, err = capsys.readouterr()
        assert done == status, out + err
        return out + err

    made = Installers(api_server, Helm(tmp_path, kubeconfig), plugin, wait_for)
    made.sweep()
    yield made
    made.sweep()
