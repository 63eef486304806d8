# SPDX-License-Identifier: MIT
"""A contract that does not come: who is waited for is said soon, and nothing else changes for it."""

from __future__ import annotations

from typing import Any

from kubectl_pacto.conformance.source import load_failed
from kubectl_pacto.controller.reconcile import PATIENCE_SECONDS
from tests.support import builders
from tests.unit.controller.fixtures import World

REF = "oci://registry.example/team/shop:1.0.0"
SAID = f"waiting for registry.example: {REF} has not been fetched yet"


def world(**status: Any) -> World:
    """A Pacto whose contract is in a registry that accepts connections and says nothing."""
    made = World({"pods": {"a": {"started": 600}}})
    made.pacto["spec"]["contractRef"] = {"oci": REF}
    made.pacto["status"] = status
    made._store()
    made.loader.hangs = True
    return made


def valid(made: World) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in made.status["conditions"] if one["type"] == "ContractValid")
    return found


def test_a_new_pacto_says_soon_whom_it_waits_for() -> None:
    made = world()
    assert made.run() == PATIENCE_SECONDS <= 5
    assert not made.patches
    made.later(PATIENCE_SECONDS)
    assert made.run() == 300
    assert made.status["contractStatus"] == "Unknown"
    assert made.status["summary"]["errorCount"] == 0
    assert (valid(made)["status"], valid(made)["reason"]) == ("Unknown", "Unavailable")
    assert valid(made)["message"] == SAID
    assert "findings" not in made.status


def test_one_that_is_answered_in_time_is_never_unknown() -> None:
    made = world()
    made.run()
    made.later(1)
    made.renew()
    answered(made)
    assert [patch["status"]["contractStatus"] for patch in made.patches] == ["Compliant"]


def test_waiting_is_no_event_and_neither_is_what_ends_it_well() -> None:
    made = world()
    made.run()
    made.later(PATIENCE_SECONDS)
    made.run()
    made.later(20)
    made.renew()
    answered(made)
    assert made.status["contractStatus"] == "Compliant"
    assert made.events == []


def test_a_registry_that_fails_in_the_end_is_an_event() -> None:
    made = world()
    made.run()
    made.later(PATIENCE_SECONDS)
    made.run()
    made.later(10)
    made.loader.hangs = False
    made.loader.found = load_failed("registry.example: timed out", is_unavailable=True)
    made.run()
    assert made.status["contractStatus"] == "Unknown"
    assert valid(made)["message"] == "registry.example: timed out"
    assert [one["reason"] for one in made.events] == ["ContractUnavailable"]


def test_after_a_restart_a_verdict_stands_for_an_interval() -> None:
    made = world(contractStatus="Compliant", observedGeneration=1)
    assert made.run() == 300
    made.later(PATIENCE_SECONDS + 1)
    made.run()
    assert not made.patches
    made.later(300)
    made.run()
    assert made.status["contractStatus"] == "Unknown"
    assert valid(made)["message"] == SAID


def test_a_verdict_about_another_contract_does_not_stand() -> None:
    made = world(contractStatus="Compliant", observedGeneration=0)
    assert made.run() == PATIENCE_SECONDS
    made.later(PATIENCE_SECONDS)
    made.run()
    assert made.status["contractStatus"] == "Unknown"


def test_a_pacto_that_is_waited_for_again_is_given_its_time_again() -> None:
    made = world()
    made.run()
    answered(made)
    made.pacto["status"] = {}
    made._store()
    made.loader.hangs = True
    made.later(1000)
    assert made.run() == PATIENCE_SECONDS


def test_nothing_is_kept_of_one_that_goes() -> None:
    made = world()
    made.run()
    assert made.reconciler._awaited
    made.live.tables["Pacto"].replace({})
    assert made.run() is None
    assert not made.reconciler._awaited


def answered(made: World) -> None:
    """The registry says what it was asked for, and the Pacto is checked by it."""
    made.loader.hangs = False
    made.loader.found = builders_contract()
    made.run()


def builders_contract() -> Any:
    """What the registry would have said."""
    from kubectl_pacto.conformance.source import Loaded
    from kubectl_pacto.engine.layers import validate

    return Loaded(validate(builders.inline_contract({"interfaces": ["api"]})))
