# SPDX-License-Identifier: MIT
"""The stand-in for rpds in the pure krew archive does what rpds does, as far as jsonschema uses it."""

from __future__ import annotations

from typing import Any

import pytest
import rpds
from hypothesis import given
from hypothesis import strategies as st

from scripts import krew_rpds

KEYS = st.sampled_from("abcde")
STEPS = st.lists(
    st.tuples(st.sampled_from(["insert", "discard", "remove", "update"]), KEYS, st.integers(0, 3))
)


def play_map(kind: Any, steps: list[tuple[str, str, int]]) -> list[Any]:
    """What a mapping holds after each step; the one before stays as it was."""
    held, seen = kind(), []
    for name, key, value in steps:
        before = dict(held)
        kept = held
        try:
            if name == "insert":
                held = held.insert(key, value)
            elif name == "update":
                held = held.update({key: value, "z": value})
            else:
                held = getattr(held, name)(key)
        except KeyError as error:
            seen.append(error.args)
        assert dict(kept) == before
        seen.append((sorted(held.items()), len(held), key in held, held.get(key), held.get("q", 7)))
    return seen


def play_set(kind: Any, steps: list[tuple[str, str, int]]) -> list[Any]:
    """The same of a set."""
    held, seen = kind(), []
    for name, key, _ in steps:
        try:
            held = held.update([key, "z"]) if name == "update" else getattr(held, name)(key)
        except KeyError as error:
            seen.append(error.args)
        seen.append((sorted(held), len(held), key in held))
    return seen


@given(STEPS)
def test_a_mapping_does_what_that_of_rpds_does(steps: list[tuple[str, str, int]]) -> None:
    assert play_map(krew_rpds.HashTrieMap, steps) == play_map(rpds.HashTrieMap, steps)


@given(STEPS)
def test_a_set_does_what_that_of_rpds_does(steps: list[tuple[str, str, int]]) -> None:
    assert play_set(krew_rpds.HashTrieSet, steps) == play_set(rpds.HashTrieSet, steps)


@pytest.mark.parametrize("kind", [krew_rpds, rpds], ids=["ours", "rpds"])
def test_what_else_is_used(kind: Any) -> None:
    grown = kind.List([1, 2]).push_front(0)
    assert (list(grown), len(grown)) == ([0, 1, 2], 3)
    assert kind.List([1]) == kind.List([1])
    assert list(kind.List()) == []
    held = kind.HashTrieMap({"a": 1})
    assert kind.HashTrieMap.convert(held) is held
    assert dict(kind.HashTrieMap.convert({"b": 2})) == {"b": 2}
    assert held == kind.HashTrieMap(a=1)
    assert hash(held) == hash(kind.HashTrieMap({"a": 1}))
    assert set(kind.HashTrieSet(["a", "b"])) == {"a", "b"}
    with pytest.raises(KeyError):
        held["q"]
