# SPDX-License-Identifier: MIT
"""The options of `pacto agent`: defaults of the specification, and refusals that name the remedy."""

from __future__ import annotations

import argparse

import pytest

from kubectl_pacto.errors import UsageError
from kubectl_pacto.model.node import AGENT_NAMESPACE
from pacto_agent.config import interval, parse, parse_inspect, parse_top


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NODE_NAME", "POD_NAMESPACE", "POD_UID"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_the_specifications() -> None:
    options = parse(["--node-name", "n"])
    assert (options.publish_interval, options.resync_interval) == (30.0, 60.0)
    assert (options.namespace, options.sink, options.mapper) == (AGENT_NAMESPACE, "stdout", "auto")


def test_the_downward_api_names_node_namespace_and_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("NODE_NAME", "n"), ("POD_NAMESPACE", "ns"), ("POD_UID", "u")):
        monkeypatch.setenv(name, value)
    options = parse([])
    assert (options.node_name, options.namespace, options.pod_uid) == ("n", "ns", "u")
    assert parse(["--node-name", "other"]).node_name == "other", "a flag wins"


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--sink", "file"], "--sink file needs --output PATH"),
        (["--output", "/tmp/x"], "--output needs --sink file"),
        (["--sink", "kubernetes", "--output", "/tmp/x"], "--output needs --sink file"),
        (["--namespace", ""], "--namespace is empty: leave it out for pacto-node-agent"),
        (["--namespace", "a/b"], "--namespace 'a/b' is no namespace's name"),
        (["--namespace", "Upper"], "--namespace 'Upper' is no namespace's name"),
        (["--namespace", "a" * 64], "is no namespace's name"),
        (["--cgroup-root", "/no/such"], "--cgroup-root '/no/such' is no directory: .*/sys/fs/cgroup"),
        (["--proc", "/dev/null"], "--proc '/dev/null' is no directory: give where the host's /proc is"),
        (["--cgroup-root", ""], "--cgroup-root '' is no directory"),
        (["--node-name", ""], r"--node-name is empty and so are \$NODE_NAME and the host's name"),
    ],
)
def test_options_that_do_not_fit_together_name_the_remedy(arguments: list[str], remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy) as caught:
        parse(arguments)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("arguments", [["--namespace", ""], ["--cgroup-root", "/no/such"]])
def test_top_refuses_what_the_agent_refuses(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match=arguments[0]):
        parse_top(arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sink", "elsewhere"], "--sink: invalid choice: 'elsewhere' (choose from"),
        (["--mapper", "guess"], "--mapper: invalid choice: 'guess' (choose from"),
        (["--publish-interval", "soon"], "'soon' is not a duration such as 30s, 2m or 1h30m"),
        (["--publish-interval", "100ms"], "100ms is not between 0.2s and 24h"),
        (["--resync-interval", "25h"], "25h is not between 0.2s and 24h"),
        (["--publish-interval", "0"], "0 is not between"),
        (["--resync-interval", "-5s"], "--resync-interval: expected one argument"),
        (["--no-such-flag"], "unknown argument --no-such-flag;"),
        (["--ouput", "x"], "unknown argument --ouput (did you mean --output?)"),
        (
            ["--publish-intervall=5s"],
            "unknown argument --publish-intervall=5s (did you mean --publish-interval?)",
        ),
        (["--publish", "5s"], "unknown argument --publish (did you mean"),
        (["surplus"], "unknown argument surplus;"),
    ],
)
def test_a_bad_flag_ends_with_status_2_and_says_what_is_wrong(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("pacto agent: ")
    assert said.endswith("; `pacto agent --help` lists the options\n")
    assert said.count("\n") == 1, "no usage before it"


@pytest.mark.parametrize(
    ("text", "seconds"), [("200ms", 0.2), ("30s", 30.0), ("1m30s", 90.0), ("24h", 86400.0)]
)
def test_an_interval_within_the_bounds(text: str, seconds: float) -> None:
    assert interval(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1", "1d", "1.5.5s", "1e3s", "nan", "199ms", "24h1ms"])
def test_an_interval_outside_of_them(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        interval(text)


def test_inspect_and_top_take_the_hosts_options() -> None:
    options, output = parse_inspect(["--proc", "/host/proc", "-o", "json"])
    assert (options.proc, output) == ("/host/proc", "json")
    assert parse_top(["--interval", "1s", "--mapper", "proc"]).publish_interval == 1.0


def test_help_is_printed_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--sink", "--output", "--publish-interval", "--resync-interval", "--mapper", "--node-name"):
        assert flag in text
    assert "1s to 24h, default 60s; to try it, 0.2s or more" in " ".join(text.split())
