# SPDX-License-Identifier: MIT
"""Which release is the one before this, and what stands in for it before the first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cluster.layout import REPOSITORY, ClusterError
from tests.images import previous


def git(repository: Path, *words: str) -> None:
    """A command of somebody who has no configuration."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(repository), *who, *words], check=True, capture_output=True)


def commit(repository: Path, version: str) -> None:
    """A tree of this version."""
    package = repository / previous.PACKAGE
    package.parent.mkdir(exist_ok=True)
    package.write_text(f'__version__: Final = "{version}"\n')
    git(repository, "add", ".")
    git(repository, "commit", "-m", version)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and no tag."""
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "--quiet")
    commit(made, "0.1.0")
    return made


def test_before_the_first_release_there_is_none(repository: Path) -> None:
    assert previous.previous_tag(repository) == ""
    git(repository, "tag", "v0.1.0")  # on the first commit: nothing is before it
    assert previous.previous_tag(repository) == ""


def test_the_tag_of_what_is_checked_out_is_not_the_one_before(repository: Path) -> None:
    git(repository, "tag", "v0.1.0")
    commit(repository, "0.2.0")
    git(repository, "tag", "nightly")
    assert previous.previous_tag(repository) == "v0.1.0"
    git(repository, "tag", "v0.2.0")
    assert previous.previous_tag(repository) == "v0.1.0"
    commit(repository, "0.3.0.dev0")
    assert previous.previous_tag(repository) == "v0.2.0"


def test_a_release_is_exported_as_it_was_tagged(repository: Path, tmp_path: Path) -> None:
    git(repository, "tag", "v0.1.0")
    commit(repository, "0.2.0")
    (repository / "left.txt").write_text("not committed")
    previous.export("v0.1.0", repository, tmp_path / "tree")
    assert previous.version_of(tmp_path / "tree") == "0.1.0"
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["kubectl_pacto"]
    with pytest.raises(ClusterError, match="git archive v9"):
        previous.export("v9", repository, tmp_path / "none")


def test_the_stand_ins_crd_lacks_one_field_and_nothing_else() -> None:
    text = (REPOSITORY / previous.CRD).read_text()
    today, then = yaml.safe_load(text), yaml.safe_load(previous._without(text, previous.LACKING))
    schema = today["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["collection"]["properties"][previous.LACKING]
    assert then == today
    with pytest.raises(ClusterError, match="0 properties"):
        previous._without(text, "nobody")
