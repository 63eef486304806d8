# SPDX-License-Identifier: MIT
"""What a person types: nearly a command's name, values that are text, a dry run, a file that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubectl_pacto.cli import demo_cmd
from kubectl_pacto.cli.demo import preflight
from kubectl_pacto.cli.main import main
from tests.support.sources import ROOT
from tests.unit.cli.conftest import Plugin
from tests.unit.cli.test_install import cluster  # noqa: F401 -- a fixture

PRINT = ("install", "-o", "yaml", "--dry-run", "client")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("evalaute", "Error: No such command 'evalaute'. Did you mean evaluate?\n"),
        ("xyz", "Error: No such command 'xyz'.\n"),
    ],
)
def test_a_command_by_nearly_its_name(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([typed]) == 2
    assert capsys.readouterr().err.endswith(said)


def images(printed: str) -> list[str]:
    return [
        container["image"]
        for raw in yaml.safe_load_all(printed)
        if raw["kind"] == "Deployment"
        for container in raw["spec"]["template"]["spec"]["containers"]
    ]


def test_a_tag_of_digits_is_given_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    image = "image.repository=registry.example/pacto"
    assert main([*PRINT, "--set", f"{image},image.tag=20261018"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "error: image.tag must be text, not 20261018: --set-string image.tag=20261018 gives it as text\n"
    )
    assert main([*PRINT, "--set", image, "--set-string", "image.tag=20261018"]) == 0
    assert images(capsys.readouterr().out) == ["registry.example/pacto:20261018"]


def test_text_is_laid_over_what_set_says_and_no_word_is_special(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PRINT, "--set-string", "image.tag=true", "--set", "image.tag=1"]) == 0
    (image,) = images(capsys.readouterr().out)
    assert image.endswith(":true")
    assert main([*PRINT, "--set-string", "controller.workers=3"]) == 2
    assert "controller.workers must be a whole number, not '3'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--dry-run",), ("--dry-run=server",)])
def test_uninstall_takes_a_dry_run_as_install_does(cluster: Plugin, words: tuple[str, ...]) -> None:  # noqa: F811
    assert cluster("install", "--no-wait").status == 0
    there = dict(cluster.api.objects)
    done = cluster("uninstall", *words)
    assert done.status == 0, done.err
    assert cluster.api.objects == there
    asked = cluster("uninstall", "--dry-run=client")
    assert (asked.status, "not one of 'none', 'server'" in asked.err) == (2, True)


def test_a_kubeconfig_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(["status"]) == 1
    assert capsys.readouterr().err == (
        "error: no cluster is configured: set KUBECONFIG, or pass --kubeconfig or --server; "
        f"not there: {tmp_path}/none (`kubectl config view` shows what is configured)\n"
    )


def test_a_folder_that_cannot_be_made_is_said_before_the_demo_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(preflight, "require", lambda *_: None)
    monkeypatch.setattr(demo_cmd, "run", lambda *_, **__: pytest.fail("the demo ran"))
    assert main(["demo", "--keep", str(tmp_path / "file" / "below")]) == 1
    assert f"--keep {tmp_path}/file/below: Not a directory" in capsys.readouterr().err


def test_files_of_an_earlier_moment_are_said_to_be_judged_by_now(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(ROOT / "docs" / "examples" / "ready-but-silent.yaml")
    assert main(["evaluate", "-f", example]) == 0
    said = capsys.readouterr()
    assert "EVIDENCE_STALE" in said.out
    assert said.err == (
        "the newest heartbeat of the input is of 2026-10-18T09:12:39Z and stale by now: "
        "--at TIME judges by that time\n"
    )
    for more in (["--at", "2026-10-18T09:12:44Z"], ["--kernel-evidence", "off"], ["--staleness", "999999h"]):
        main(["evaluate", "-f", example, *more])
        assert capsys.readouterr().err == ""


def test_a_clock_before_the_evidence_is_said_to_be_so(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(ROOT / "docs" / "examples" / "ready-but-silent.yaml")
    main(["evaluate", "-f", example, "--at", "2026-10-18T09:00:00Z"])
    assert capsys.readouterr().err == (
        "the newest heartbeat of the input is of 2026-10-18T09:12:39Z, after the time of --at, "
        "and counts as of then\n"
    )


@pytest.mark.parametrize(
    ("replaced", "by", "said"),
    [
        ("app.kubernetes.io/part-of: pacto", "x: y", "without the label app.kubernetes.io/part-of=pacto"),
        ("namespace: pacto-node-agent", "namespace: agents", "agents report in namespace pacto-node-agent"),
        ("nodeName: n1", "nodeName: n2", "its nodeName is n2"),
        ("kind: Lease", "kind: Leese", "no Lease in the input for n1: an object's lastPublished is"),
    ],
)
def test_node_objects_that_do_not_count_are_named(
    replaced: str, by: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "examples" / "ready-but-silent.yaml").read_text()
    assert replaced in text
    (tmp_path / "all.yaml").write_text(text.replace(replaced, by))
    main(["evaluate", "-f", str(tmp_path / "all.yaml"), "--at", "2026-10-18T09:12:44Z"])
    assert said in capsys.readouterr().err
