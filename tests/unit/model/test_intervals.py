# SPDX-License-Identifier: MIT
"""The bounds of the node agent's intervals are the same for everybody who is told one."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_pacto.controller.manifests.chart_values import VALUES
from kubectl_pacto.controller.manifests.values_schema import INTERVAL_PATTERN, Section
from kubectl_pacto.model.bounds import LONGEST_INTERVAL_SECONDS, SHORTEST_INTERVAL_SECONDS
from kubectl_pacto.model.duration import parse_duration, parse_interval

LONGEST = int(LONGEST_INTERVAL_SECONDS)
SHORTEST = int(SHORTEST_INTERVAL_SECONDS)


def clock(seconds: int) -> str:
    """As a person and as Go write it: hours, minutes and seconds, those that are zero left out."""
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


@given(st.integers(SHORTEST, LONGEST))
@example(SHORTEST)
@example(LONGEST)
def test_the_pattern_takes_every_interval_within_the_bounds(seconds: int) -> None:
    assert re.search(INTERVAL_PATTERN, f"{seconds}s")
    assert re.search(INTERVAL_PATTERN, clock(seconds))
    assert parse_interval(f"{seconds}s") == parse_interval(clock(seconds)) == seconds
    if seconds % 60 == 0:
        assert re.search(INTERVAL_PATTERN, f"{seconds // 60}m")


@given(st.from_regex(INTERVAL_PATTERN, fullmatch=True))
def test_what_the_pattern_takes_is_within_the_bounds(text: str) -> None:
    parse_interval(text.removesuffix("\n"))


@given(st.integers(0, 10 * LONGEST * 1000))
@example(SHORTEST * 1000 - 1)
@example(LONGEST * 1000 + 1)
def test_the_pattern_takes_nothing_out_of_the_bounds(milliseconds: int) -> None:
    for text in (f"{milliseconds}ms", f"{milliseconds / 1000:.3f}s", clock(milliseconds // 1000)):
        if re.search(INTERVAL_PATTERN, text):
            assert SHORTEST <= parse_duration(text) <= LONGEST


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "999ms", "0.99s", "0.01m", "24h1s", "25h", "1441m", "86401s"]
)
def test_neither_takes_one_that_is_out(text: str) -> None:
    assert not re.search(INTERVAL_PATTERN, text)
    with pytest.raises(ValueError, match=r"is not between 1s and 24h|is not a duration"):
        parse_interval(text)


@pytest.mark.parametrize("name", ["publishInterval", "resyncInterval"])
def test_both_intervals_of_a_release_have_that_bound(name: str) -> None:
    agent = VALUES.entries["nodeAgent"]
    assert isinstance(agent, Section)
    assert agent.schema()["properties"][name]["pattern"] == INTERVAL_PATTERN
    assert "1s to 24h" in agent.schema()["properties"][name]["description"]
