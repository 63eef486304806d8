# SPDX-License-Identifier: MIT
"""The plugin run in this process against a fake cluster, and golden files of what it prints.

pytest --update-golden writes the files anew; the difference is then for a reviewer to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubectl_pacto.cli.main import main
from tests.support.fleet_api import FleetApi, serve_fleet
from tests.support.sources import ROOT
from tests.unit.cli.fleet_scene import fill

GOLDEN = Path(ROOT, "tests", "golden", "cli")


@dataclass(frozen=True)
class Done:
    """What a run printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All of it, as a golden file holds it."""
        parts = [self.out, f"--- stderr\n{self.err}" if self.err else ""]
        return "".join(parts) + (f"--- exit status {self.status}\n" if self.status else "")


@dataclass
class Plugin:
    """Runs commands against one fake cluster; `url` is left out of what they print."""

    api: FleetApi
    url: str
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Done:
        """Run one command."""
        self.capture.readouterr()
        status = main([*words, "--server", self.url])
        out, err = self.capture.readouterr()
        return Done(status, out, err.replace(self.url, "URL"))


@pytest.fixture
def empty() -> Iterator[tuple[FleetApi, str]]:
    """A cluster with nothing in it."""
    api = FleetApi()
    with serve_fleet(api) as url:
        yield api, url


@pytest.fixture
def plugin(empty: tuple[FleetApi, str], capsys: pytest.CaptureFixture[str]) -> Plugin:
    """The plugin over the whole scene."""
    fill(empty[0])
    return Plugin(*empty, capsys)


@pytest.fixture
def bare(empty: tuple[FleetApi, str], capsys: pytest.CaptureFixture[str]) -> Plugin:
    """The plugin over a cluster with nothing in it."""
    return Plugin(*empty, capsys)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a golden file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text(), f"{path.name}: pytest --update-golden accepts the change"

    return compare
