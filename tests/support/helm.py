# SPDX-License-Identifier: MIT
"""A real helm, compiled once from its module and cached, and what it renders."""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.layout import DEFAULT_VERSION, cache
from tests.support.require import require_programs
from tests.support.sources import ROOT

VERSION: Final = "3.22.0"
MODULE: Final = f"helm.sh/helm/v3/cmd/helm@v{VERSION}"
CHART: Final = ROOT / "charts" / "pacto-operator"
NAMESPACE: Final = "pacto-operator-system"
RELEASE: Final = "pacto-operator"
Object = dict[str, Any]


@functools.cache
def binary() -> Path:
    """helm, compiled unless it is cached; a minute and a half on two cores."""
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    path = cache() / "tools" / f"helm-{VERSION}-{go}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                environment = {**os.environ, "GOBIN": folder, "CGO_ENABLED": "0", "GOWORK": "off"}
                command = ["go", "install", "-trimpath", "-ldflags=-s -w", MODULE]
                done = subprocess.run(
                    command, env=environment, cwd=folder, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, done.stderr
                (Path(folder) / "helm").rename(path)
    return path


@dataclass(frozen=True, slots=True)
class Helm:
    """helm with a home of its own, and a cluster where it has one."""

    home: Path
    kubeconfig: str = os.devnull

    def __call__(self, *words: str | Path, status: int = 0, timeout: float = 300) -> str:
        """Run it; standard output, or the errors where it should fail."""
        homes = {f"HELM_{name}_HOME": str(self.home / name) for name in ("CACHE", "CONFIG", "DATA")}
        # discovery is cached below HOME, and without one in the working folder
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": self.kubeconfig,
            **homes,
        }
        command = [str(binary()), *(str(word) for word in words)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=timeout
        )
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stderr if status else done.stdout

    def values_file(self, values: Mapping[str, Any]) -> Path:
        """The values as a file, a new one each time."""
        descriptor, name = tempfile.mkstemp(suffix=".yaml", dir=self.home)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(dict(values), file, allow_unicode=True)
        return Path(name)

    def render(self, values: Mapping[str, Any], chart: Path = CHART) -> list[Object]:
        """The objects of a release, hooks too."""
        return [one for one in yaml.safe_load_all(self("template", *self._release(values, chart))) if one]

    def refusal(self, values: Mapping[str, Any]) -> str:
        """What helm says about values that it refuses."""
        return self("template", *self._release(values, CHART), status=1)

    def _release(self, values: Mapping[str, Any], chart: Path) -> list[str | Path]:
        versions = ["--kube-version", DEFAULT_VERSION]
        return [RELEASE, chart, "-n", NAMESPACE, *versions, "-f", self.values_file(values)]


def require_helm(tier: str) -> None:
    """The test runs helm."""
    require_programs(tier, "go")
