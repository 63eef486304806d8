# SPDX-License-Identifier: MIT
"""helm, and the plugin that prints what it would install."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from tests.support.helm import NAMESPACE, Helm, require_helm

Install = Callable[[Mapping[str, Any]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """A real helm without a cluster."""
    require_helm("chart")
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture
def plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`kubectl pacto install --dry-run=client -o yaml` with these values: status, output, errors."""

    def run(values: Mapping[str, Any]) -> tuple[int, str, str]:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values), allow_unicode=True), encoding="utf-8")
        capsys.readouterr()
        words = ["install", "-n", NAMESPACE, "--dry-run=client", "-o", "yaml", "-f", str(file)]
        status = main(words)
        out, err = capsys.readouterr()
        return status, out, err

    return run
