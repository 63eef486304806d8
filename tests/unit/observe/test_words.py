# SPDX-License-Identifier: MIT
"""Words of messages: every reason has some, and no message grows with a fleet or with what others write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_pacto.model.node import CollectionReason, PodReason
from kubectl_pacto.observe.words import MOST_TEXT, REASONS, count, explain, quoted, several
from tests.support.sources import ROOT


def test_every_reason_of_an_agent_has_words() -> None:
    known = {one.value for one in (*CollectionReason, *PodReason)} - {""}
    assert known <= REASONS.keys()
    assert explain("Novel") == "Novel"


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_in_the_documentation(reason: str) -> None:
    assert f"`{reason}`" in Path(ROOT, "docs", "observations.md").read_text(encoding="utf-8")


def test_what_others_write_stays_one_short_line() -> None:
    assert quoted("no BTF\n  at all ") == "no BTF at all"
    assert len(quoted("x" * 10_000)) == MOST_TEXT + 3


@pytest.mark.parametrize(
    ("parts", "said"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_the_first_few_are_named(parts: list[str], said: str) -> None:
    assert several(parts) == said


@pytest.mark.parametrize(("number", "said"), [(0, "no pod"), (1, "1 pod"), (2, "2 pods")])
def test_counts_are_words(number: int, said: str) -> None:
    assert count(number, "pod") == said
