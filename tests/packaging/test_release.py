# SPDX-License-Identifier: MIT
"""A release is hashed again, whole and in its parts: one changed byte anywhere names its file."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_pacto import __version__
from scripts import chart_archive, krew, release, release_machines, release_verify
from tests.images import oci
from tests.support.require import require_programs
from tests.support.sources import ROOT

pytestmark = pytest.mark.packaging
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
IMAGE = f"pacto-{__version__}-amd64.oci.tar"
BILL = f"kubectl-pacto-{__version__}-amd64.cdx.json"
CHART = f"pacto-operator-{__version__}.tgz"
ARCHIVES = {name: f"kubectl-pacto_v{__version__}_{name}.tar.gz" for name in ("linux_amd64", "any")}


@pytest.fixture(scope="session")
def parts(sdist: Path, pure_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder as a release has it; the image and the plugin's archives are small stand-ins."""
    folder = tmp_path_factory.mktemp("release")
    for path in (sdist, pure_wheel):
        (folder / path.name).write_bytes(path.read_bytes())
    chart_archive.build(folder, 1_700_000_000)
    layer = tmp_path_factory.mktemp("layer") / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        oci.add_bytes(tar, "etc/motd", b"hello\n" * 1000)
    oci.write(folder / IMAGE, [oci.Image("localhost/x:1", (oci.Layer.of(layer),), entrypoint=("pacto",))])
    made = []
    for name, archive in ARCHIVES.items():
        with tarfile.open(folder / archive, "w:gz") as tar:
            oci.add_bytes(tar, "kubectl-pacto", name.encode() * 1000)
        made.append(krew.Archive(folder / archive, name, f"v{__version__}", "2.34"))
    (folder / "plugin.yaml").write_text(krew.manifest(krew.TEMPLATE.read_text(), made))
    bill: dict[str, Any] = {"bomFormat": "CycloneDX", "components": [release._file(folder / pure_wheel.name)]}
    (folder / BILL).write_text(json.dumps(bill))
    release_verify.write_sums(folder)
    return folder


@pytest.fixture
def folder(parts: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    for path in parts.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def flip(path: Path, at: int | None = None) -> None:
    """Change one byte, in the middle unless told where."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0x20
    path.write_bytes(data)


def named(folder: Path) -> set[str]:
    """The files that verification complains about."""
    return {line.partition(":")[0] for line in release_verify.problems(folder)}


def test_a_release_that_nobody_touched_holds_together(parts: Path) -> None:
    assert release_verify.problems(parts) == []


def test_one_changed_byte_names_its_file(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.name != release_verify.SUMS)
    assert len(names) == 8
    for name in names:
        whole = (folder / name).read_bytes()
        flip(folder / name)
        assert name in named(folder), name
        assert "\n" not in "".join(release_verify.problems(folder))
        (folder / name).write_bytes(whole)
    assert named(folder) == set()


def test_a_file_that_is_missing_or_too_much_is_named(folder: Path) -> None:
    (folder / CHART).unlink()
    (folder / "extra.txt").write_text("x")
    assert named(folder) == {CHART, "extra.txt"}


def test_new_checksums_do_not_hide_what_changed_inside(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    spoil: dict[str, Callable[[Path], None]] = {
        wheel.name: flip,
        IMAGE: lambda path: flip(path, path.read_bytes().index(b"hello\nhello\n")),
        ARCHIVES["any"]: flip,
    }
    for name, change in spoil.items():
        whole = (folder / name).read_bytes()
        change(folder / name)
        release_verify.write_sums(folder)
        told = " ".join(release_verify.problems(folder))
        assert name in told, told
        (folder / name).write_bytes(whole)
    release_verify.write_sums(folder)
    assert named(folder) == set()


def test_an_image_with_a_blob_that_nothing_names_is_told(folder: Path) -> None:
    with tarfile.open(folder / IMAGE, "a") as tar:
        oci.add_bytes(tar, f"blobs/sha256/{'ab' * 32}", b"hidden")
    release_verify.write_sums(folder)
    (line,) = release_verify.problems(folder)
    assert line.startswith(f"{IMAGE}: blob sha256:abab")
    assert "named by nothing" in line


def test_a_native_wheel_without_a_bill_of_materials_is_told(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    native = folder / wheel.name.replace("py3-none-any", "cp311-abi3-manylinux_2_34_x86_64")
    native.write_bytes(wheel.read_bytes())
    release_verify.write_sums(folder)
    assert f"{native.name}: no bill of materials describes it" in release_verify.problems(folder)


def test_two_versions_in_one_release_are_told(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    wheel.rename(folder / wheel.name.replace(__version__, "9.9.9"))
    release_verify.write_sums(folder)
    assert any("has version 9.9.9" in line for line in release_verify.problems(folder))


def test_the_command_says_each_problem_in_a_line_and_ends_with_1(folder: Path) -> None:
    flip(folder / CHART)
    command = [sys.executable, str(ROOT / "scripts" / "release_verify.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"release: {CHART}: ")
    assert "Traceback" not in done.stderr


def workflow() -> dict[str, Any]:
    """The workflow; YAML reads its key `on` as true."""
    found = yaml.safe_load(WORKFLOW.read_text())
    return {"on" if key is True else key: value for key, value in found.items()}


def test_the_workflow_runs_on_a_tag_alone_and_starts_without_rights() -> None:
    found = workflow()
    assert found["on"] == {"push": {"tags": ["v*"]}}
    assert found["permissions"] == {}
    for name, job in found["jobs"].items():
        assert "permissions" in job, name
        assert "timeout-minutes" in job, name


def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it() -> None:
    uses = [line.strip() for line in WORKFLOW.read_text().splitlines() if "uses:" in line]
    assert uses
    for line in uses:
        _, _, rest = line.partition("@")
        commit, _, version = rest.partition(" # v")
        assert len(commit) == 40, line
        assert version, line


def test_the_workflow_passes_its_linter() -> None:
    require_programs("packaging", "go")
    linter = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
    done = subprocess.run(
        ["go", "run", linter, "-shellcheck=", "-pyflakes=", str(WORKFLOW)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_jobs_that_sign_may_ask_for_an_identity() -> None:
    for name, job in workflow()["jobs"].items():
        asks = job["permissions"].get("id-token") == "write"
        assert asks == (name in ("images", "wheels", "chart", "release")), name
    text = WORKFLOW.read_text()
    assert "secrets." not in text.replace("secrets.GITHUB_TOKEN", "")
    assert "release_verify.py" in text


def test_the_workflow_builds_both_architectures_by_the_same_step() -> None:
    """Each on a machine of its own, which builds no other: what is released ran on no emulator."""
    build = workflow()["jobs"]["build"]
    machines = {one["arch"]: one["runner"] for one in build["strategy"]["matrix"]["include"]}
    assert machines.keys() == set(release_machines.ARCHITECTURES.values())
    (step,) = (one["run"] for one in build["steps"] if "make release-dry-run" in one.get("run", ""))
    assert "--architecture ${{ matrix.arch }}" in step
