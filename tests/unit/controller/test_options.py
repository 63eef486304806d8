# SPDX-License-Identifier: MIT
"""The options of `pacto operator`."""

from __future__ import annotations

import pytest

from kubectl_pacto.controller.options import parser, settings

POD = {"POD_NAMESPACE": "pacto-operator-system", "POD_NAME": "pod-1"}


def test_by_default_nothing_is_read_of_the_kernel() -> None:
    told = settings([], POD)
    assert (told.namespace, told.identity) == ("pacto-operator-system", "pod-1")
    assert not told.checks.kernel.enabled
    assert told.agent is None
    assert not told.leader_elect
    assert not told.probing
    assert told.checks.window == 120
    assert (told.metrics_address, told.health_address) == (":8080", ":8081")


def test_the_node_agent_turns_kernel_evidence_on() -> None:
    told = settings(["--enable-node-agent", "--node-agent-namespace", "agents"], POD)
    assert told.checks.kernel.enabled
    assert told.checks.kernel.namespace == "agents"
    assert told.agent is not None
    assert told.agent.namespace == "agents"


def test_agents_that_you_run_are_read_and_not_run() -> None:
    told = settings(["--kernel-evidence-namespace", "mine", "--staleness", "2m"], POD)
    assert told.agent is None
    assert told.checks.kernel.namespace == "mine"
    assert told.checks.kernel.staleness == 120


def test_the_agents_values_travel_as_json() -> None:
    values = '{"resources": {"limits": {"cpu": "1"}}, "nodeSelector": {"a": "b"}, "tolerations": []}'
    told = settings(["--enable-node-agent", "--node-agent-values", values, "--mapper", "iter"], POD)
    assert told.agent is not None
    assert told.agent.resources == {"limits": {"cpu": "1"}}
    assert told.agent.node_selector == {"a": "b"}
    assert told.agent.tolerations == []
    assert told.agent.mapper == "iter"


def test_addresses_can_be_turned_off() -> None:
    told = settings(["--metrics-bind-address=0", "--health-probe-bind-address", "0"], POD)
    assert (told.metrics_address, told.health_address) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "environment", "status"),
    [
        ([], {}, 1),
        (["--workers", "0"], POD, 2),
        (["--staleness", "soon"], POD, 2),
        (["--publish-interval", "x"], POD, 2),
        (["--publish-interval", "999ms"], POD, 2),
        (["--resync-interval", "24h1s"], POD, 2),
        (["--mapper", "guess"], POD, 2),
        (["--enable-node-agent", "--node-agent-values", "["], POD, 2),
        (["--enable-node-agent", "--node-agent-values", "[]"], POD, 2),
        (["--enable-prob"], POD, 2),
    ],
)
def test_a_wrong_call_ends_with_a_status(
    arguments: list[str], environment: dict[str, str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        settings(arguments, environment)
    assert caught.value.code == status
    said = capsys.readouterr().err
    assert said.startswith("pacto operator: ")
    assert said.count("\n") == 1, "no usage before it"
    assert not arguments or [one for one in arguments if one.startswith("--")][-1] in said


def test_help_says_what_each_option_is() -> None:
    made = parser()
    assert [action.dest for action in made._actions if not action.help] == []
    said = " ".join(made.format_help().split())
    assert "--workers N checks at a time, default 4" in said
    assert "--node-agent-max-unavailable N nodes at a time, default 10%" in said
