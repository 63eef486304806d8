# SPDX-License-Identifier: MIT
"""Rounds that write are rounds of a leader: one ends as soon as the lead is no longer sure."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kubectl_pacto.controller import registry_side as module
from kubectl_pacto.controller.registry_side import RegistrySide


@pytest.mark.parametrize("name", ["mirror", "pull secrets"])
def test_a_round_is_told_to_end_when_the_lead_goes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leads, stop, told = threading.Event(), threading.Event(), list[bool]()

    def round_of_work(_client: object, ends: threading.Event) -> None:
        told.append(ends.is_set())
        leads.clear()
        told.append(ends.is_set())
        told.append(ends.wait(0))
        stop.set()

    class Part:
        """The mirror, or the look at pull secrets."""

        def __init__(self, *_given: Any, **_named: Any) -> None:
            self.round = round_of_work

    monkeypatch.setattr(module, "Mirror", Part)
    monkeypatch.setattr(module, "PullSecrets", Part)
    side = RegistrySide((), object(), lambda _: None, leads=leads.is_set)  # type: ignore[arg-type]
    leads.set()
    side.work()[name](object(), stop)  # type: ignore[arg-type]
    assert told == [False, True, True]
