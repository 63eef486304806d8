# SPDX-License-Identifier: MIT
"""What a cluster calls itself steers no terminal: every command, every form, standard error too."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from kubectl_pacto.cli.main import main
from kubectl_pacto.cli.terminal import json_text, printable
from tests.unit.cli.conftest import Plugin

# clears the screen, sets the title, turns the line around; C0, C1 and bidi
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp\x7f\r"
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def poison(value: Any, key: str = "") -> Any:
    """An object whose texts, those that a path or a choice rests on aside, end in EVIL."""
    if isinstance(value, dict):
        return {name: poison(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [poison(item, key) for item in value]
    kept = ("apiVersion", "kind", "severity", "contractStatus", "uid", "state", "phase", "type", "status")
    is_time = key.endswith(("At", "Time", "Published"))
    if isinstance(value, str) and not is_time and key not in (*kept, "address", "failureReason"):
        return value + EVIL
    return value


@pytest.fixture
def hostile(plugin: Plugin) -> Plugin:
    """The scene, each Pacto and each agent's object with EVIL in what they say."""
    for path, raw in list(plugin.api.objects.items()):
        if raw.get("kind") in ("Pacto", "Deployment", "DaemonSet"):
            labels = raw["metadata"].get("labels")
            metadata = {**raw["metadata"], "name": raw["metadata"]["name"] + EVIL, "labels": labels}
            plugin.api.put(path, {**poison(raw), "metadata": metadata})
        elif raw.get("kind") == "NodeRuntimeObservation":
            node = {**raw["node"], "kernelRelease": EVIL, "agentVersion": f"9{EVIL}"}
            collection = {**raw["collection"], "message": EVIL}
            plugin.api.put(path, {**raw, "node": node, "collection": collection})
    return plugin


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name"])
@pytest.mark.parametrize("words", [["status", "-A"], ["findings", "-A"], ["coverage"]], ids=lambda w: w[0])
def test_a_listing_steers_no_terminal(hostile: Plugin, words: list[str], form: str) -> None:
    done = hostile(*words, "-o", form)
    assert done.status == 0, done.err
    assert "owned" in done.out or (words[0] == "coverage" and form in ("table", "name"))
    shown = done.out.replace("\u202e", "") if form == "yaml" else done.out
    assert not STEERS.search(shown), STEERS.search(shown)
    assert not STEERS.search(done.err)


@pytest.mark.parametrize("words", [["version"], ["check"], ["check", "-o", "short"], ["suggest", "-A"]])
def test_other_commands_steer_no_terminal(hostile: Plugin, words: list[str]) -> None:
    done = hostile(*words)
    assert "Traceback" not in done.err
    assert not STEERS.search(done.out.replace("\u202e", ""))
    assert not STEERS.search(done.err)


def test_an_error_steers_no_terminal(
    plugin: Plugin, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    assert not STEERS.search(plugin("status", f"x{EVIL}", "-n", "shop").err)
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": EVIL, "uid": 1}}))
    assert main(["evaluate", "-f", str(path)]) == 1
    err = capsys.readouterr().err
    assert "owned" in err
    assert not STEERS.search(err)


def test_json_stays_what_it_was() -> None:
    assert json.loads(json_text({"a": EVIL, "b": "é\u2028"})) == {"a": EVIL, "b": "é\u2028"}
    assert not STEERS.search(json_text({"a": EVIL}))
    assert "é" in json_text("é")


def test_printable_keeps_what_can_be_read() -> None:
    assert printable("two\nlines é €") == "two\nlines é €"
    assert printable("\x1b[31m") == "\\x1b[31m"
