# SPDX-License-Identifier: MIT
"""A check does not get dearer with what else there is: counted, not timed."""

from __future__ import annotations

from collections import Counter

import pytest

from kubectl_pacto.cli.evaluate_cmd import evaluate_all
from kubectl_pacto.collect.objects import Objects
from kubectl_pacto.model.kube import Selector
from kubectl_pacto.model.snapshot import KernelOptions, Options
from kubectl_pacto.observe import resolve
from tests.bench.evaluate_many import scene
from tests.support.builders import AT


def test_no_check_scans_the_pods_of_its_namespace_or_all_pactos(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    matches, build = Selector.matches, resolve.Directory.__init__

    def counted(self: Selector, labels: dict[str, str]) -> bool:
        calls["selector"] += 1
        return matches(self, labels)

    def built(self: resolve.Directory, *arguments: object) -> None:
        calls["directory"] += 1
        build(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Selector, "matches", counted)
    monkeypatch.setattr(resolve.Directory, "__init__", built)
    per_pacto = []
    for count in (10, 100):
        calls.clear()
        objects = Objects()
        for raw in scene(count, namespaces=1):
            objects.add(raw)
        options = Options(kernel=KernelOptions(enabled=True))
        results = evaluate_all(objects.cluster(), at=AT, options=options)
        assert {result.checked.contract_status.value for result in results} == {"Compliant"}
        assert calls["directory"] == 1
        per_pacto.append(calls["selector"] / count)
    assert per_pacto[0] == per_pacto[1]
