# SPDX-License-Identifier: MIT
"""Inline contracts: validated once for all that have them, forgotten once nobody has."""

from __future__ import annotations

from typing import Any

from kubectl_pacto.conformance import source
from kubectl_pacto.controller.loader import UNUSED_SECONDS, ContractLoader
from kubectl_pacto.model.pacto import Pacto
from tests.support import builders


class Nobody:
    """Downloads that are never asked."""

    def forget(self, key: tuple[str, str]) -> None:
        """There is nothing to forget."""


def pacto(name: str, version: str) -> Pacto:
    contract = {"service": {"name": "shop", "version": version}, "interfaces": ["api"]}
    return Pacto("ns", name, inline=builders.inline_contract(contract))


def made(clock: list[float]) -> ContractLoader:
    downloads: Any = Nobody()
    return ContractLoader(downloads, lambda: clock[0])


def test_pactos_with_one_contract_share_one(monkeypatch: Any) -> None:
    loads: list[str] = []
    load = source.load_inline

    def noted(one: Pacto) -> Any:
        loads.append(one.name)
        return load(one)

    monkeypatch.setattr("kubectl_pacto.controller.loader.load_inline", noted)
    loader = made([0.0])
    first = loader.load(pacto("a", "1.0.0"))
    assert loader.load(pacto("b", "1.0.0")) is first
    assert loader.load(pacto("c", "1.1.0")) is not first
    assert loads == ["a", "c"]


def test_a_contract_that_nobody_has_any_more_goes_within_the_hour() -> None:
    clock = [0.0]
    loader = made(clock)
    for number in range(500):
        loader.load(pacto("edited", f"1.{number}.0"))
        loader.load(pacto("kept", "1.0.0"))
        clock[0] += 60
    assert len(loader) <= UNUSED_SECONDS / 60 + 2
    clock[0] += UNUSED_SECONDS - 61
    kept = loader.load(pacto("kept", "1.0.0"))
    assert loader.load(pacto("kept", "1.0.0")) is kept
