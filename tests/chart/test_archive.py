# SPDX-License-Identifier: MIT
"""The chart's archive: the same bytes each time, what helm itself packs, and a chart."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from kubectl_pacto import __version__
from scripts import chart_archive, krew
from tests.support.helm import CHART, Helm
from tests.support.releases import FULL

EPOCH = 1_700_000_000


def names(archive: Path) -> set[str]:
    """What an archive holds."""
    with tarfile.open(archive) as tar:
        return {one.name for one in tar if one.isfile()}


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = chart_archive.build(tmp_path / "a", EPOCH)
    copied = tmp_path / "copy"
    shutil.copytree(CHART, copied)
    listed = chart_archive.files()
    monkeypatch.setattr(chart_archive, "CHART", copied)
    monkeypatch.setattr(chart_archive, "files", lambda: listed)
    for path in copied.rglob("*"):
        path.touch()
    second = chart_archive.build(tmp_path / "b", EPOCH)
    assert first.name == second.name == f"pacto-operator-{krew.semantic(__version__)[1:]}.tgz"
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != chart_archive.build(tmp_path / "c", EPOCH + 2).read_bytes()


def test_helm_packs_the_same_files_and_renders_the_same_from_it(helm: Helm, tmp_path: Path) -> None:
    archive = chart_archive.build(tmp_path, EPOCH)
    helm("package", CHART, "--destination", tmp_path / "helms")
    assert names(archive) == names(tmp_path / "helms" / archive.name)
    assert helm.render(FULL, chart=archive) == helm.render(FULL)
    assert "0 chart(s) failed" in helm("lint", "--strict", archive)


def test_the_chart_has_the_products_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    assert f"v{chart['version']}" == krew.semantic(__version__)
