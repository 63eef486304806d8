# SPDX-License-Identifier: MIT
"""Licence lines, versions, changelog fragments, pins: what several files must say alike."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from kubectl_pacto import __version__
from tests.support.sources import ROOT, files, tracked

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCRIPTS = [name for name in ("Makefile", ".ci/run", "scripts/bootstrap") if (ROOT / name).exists()]
SOURCES = [*files(".py", ".pyi", ".pyx", ".pxd", ".c", ".h", ".sh", ".go"), *SCRIPTS]
TEXTS = [name for name in tracked() if not name.startswith("tests/fixtures/")]
# words of a place or a service that mean nothing to a reader; spelled so as not to match themselves
FORBIDDEN = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w.])/wor[k]/",
        r"(?<![\w.])/tmp/[w]\b",
        r"\b(files\.)?pyth[o]nhosted\.org",
        r"\bpyp[i]\.org",
        r"\bproxy\.golan[g]\.org",
        r"\bdeb\.debia[n]\.org",
        r"\barchive\.ubunt[u]\.com",
        r"\bregistr[y]\.npmjs\.org",
        r"\bBEGIN [A-Z ]*PRIVAT[E] KEY",
    )
]


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_says_its_licence_in_one_line(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()[:2]
    licence = "(MIT OR GPL-2.0-only)" if name.endswith(".bpf.c") else "MIT"
    assert any(re.search(rf"SPDX-License-Identifier: {re.escape(licence)}", line) for line in lines)


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_speaks_of_one_machine_or_one_registry(name: str) -> None:
    try:
        text = (ROOT / name).read_text()
    except UnicodeDecodeError:
        return
    found = [match[0] for pattern in FORBIDDEN for match in pattern.finditer(text)]
    assert not found


@pytest.mark.parametrize("name", files(".py", ".pyx", ".c", ".h", ".md", ".toml", ".yaml"))
def test_a_text_ends_in_one_newline_and_has_no_tail_spaces(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not text or (text.endswith("\n") and not text.endswith("\n\n"))
    assert not re.search(r"[ \t]\n", text)


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", __version__)
    assert version("kubectl-pacto") == __version__
    assert "version" in PYPROJECT["project"]["dynamic"]
    released = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert not released or released[0] <= __version__


def test_every_changelog_fragment_is_well_formed() -> None:
    kinds = {one["directory"] for one in PYPROJECT["tool"]["towncrier"]["type"]}
    for path in (ROOT / "changes").iterdir():
        if path.name == "README.md":
            continue
        issue, kind, suffix = path.name.split(".", 2)
        assert re.fullmatch(r"\d+|\+[a-z-]+", issue), path.name
        assert kind in kinds, path.name
        assert re.fullmatch(r"(\d+\.)?md", suffix), path.name
        text = path.read_text().strip()
        assert text[0].isupper() or text[0] == "`", path.name
        assert text.endswith("."), path.name


def test_the_hooks_use_the_versions_of_the_lint_group() -> None:
    pins = set(PYPROJECT["dependency-groups"]["lint"])
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {pin for hook in hooks for pin in hook["additional_dependencies"]} == pins


def test_generated_files_are_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "generate.py"))
    for path, text in script["generated"]().items():
        assert path.read_text() == text, f"{path.relative_to(ROOT)}: run `make gen`"


def test_one_run_generates_what_is_made_of_generated_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / "scripts" / "generate.py"))["main"]
    crd, page = tmp_path / "crd.yaml", tmp_path / "page.md"

    def texts() -> dict[Path, str]:
        return {page: crd.read_text() if crd.exists() else "", crd: "new"}

    def endless() -> dict[Path, str]:
        return {crd: crd.read_text() + "more"}

    main.__globals__.update(ROOT=tmp_path, generated=texts)
    assert (main(), page.read_text()) == (0, "new")
    assert capsys.readouterr().out == "wrote page.md\nwrote crd.yaml\nwrote page.md\n"
    main.__globals__["generated"] = endless
    assert main() == 1
    assert "still changed" in capsys.readouterr().err


@pytest.mark.parametrize("name", [".ci/run", "scripts/bootstrap"])
def test_a_script_is_executable_posix_shell(name: str) -> None:
    path = ROOT / name
    assert path.stat().st_mode & 0o111
    assert path.read_text().startswith("#!/bin/sh\n")
    assert subprocess.run(["sh", "-n", path], check=False).returncode == 0


def test_make_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (\S+)$", text, re.MULTILINE))
    listed = set(re.findall(r"^([a-z0-9-]+):.*## \S", text, re.MULTILINE))
    assert targets == listed


def test_every_marker_is_a_tier_with_a_folder() -> None:
    markers = {line.partition(":")[0] for line in PYPROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    markers.remove("own_kernel(reason)")  # says what of the kernel tier tests/kernels leaves out
    assert markers <= {path.name for path in Path(ROOT, "tests").iterdir()}


def test_every_decision_is_numbered_and_says_what_why_and_what_was_rejected() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [record.name[:3] for record in records]
    # gaps are fine: who works in parallel takes a range of their own
    assert numbers[0] == "000"
    assert len(set(numbers)) == len(numbers)
    for record in records[1:]:
        text = record.read_text()
        assert re.fullmatch(r"\d{3}(-[a-z0-9]+)+\.md", record.name)
        assert re.match(rf"# {record.name[:3]}\. \S", text), record.name
        assert re.findall(r"^## (.*)$", text, re.MULTILINE)[:3] == ["What", "Why", "Rejected"], record.name
