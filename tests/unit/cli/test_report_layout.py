# SPDX-License-Identifier: MIT
"""The layout of the graph: nothing overlaps, arrows end at boxes, one graph has one picture."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.cli.report.layout import BOX_HEIGHT, BOX_WIDTH, Layout, lay_out
from tests.support.service_graph import large

NAMES = st.sampled_from([f"n{number}" for number in range(14)])
GRAPHS = st.lists(st.tuples(NAMES, NAMES), max_size=40)


def sound(layout: Layout, edges: set[tuple[str, str]]) -> None:
    """What must hold of every picture."""
    for (one, (x1, y1)), (other, (x2, y2)) in combinations(layout.boxes.items(), 2):
        apart = abs(x1 - x2) >= BOX_WIDTH or abs(y1 - y2) >= BOX_HEIGHT
        assert apart, f"{one} and {other} overlap"
    for x, y in layout.boxes.values():
        assert x >= 0
        assert y >= 0
        assert x + BOX_WIDTH <= layout.width
        assert y + BOX_HEIGHT <= layout.height
    assert set(layout.lines) == edges
    for (caller, callee), points in layout.lines.items():
        for name, (x, y) in ((caller, points[0]), (callee, points[-1])):
            left, top = layout.boxes[name]
            assert x in (left, left + BOX_WIDTH)
            assert top <= y <= top + BOX_HEIGHT
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in points)


@given(GRAPHS)
def test_any_graph_has_a_sound_picture(drawn: list[tuple[str, str]]) -> None:
    edges = {(a, b) for a, b in drawn if a != b}
    sound(lay_out({name for edge in drawn for name in edge}, drawn), edges)


@given(GRAPHS, st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_changes_nothing(
    drawn: list[tuple[str, str]], shuffle: random.Random
) -> None:
    names = [name for edge in drawn for name in edge]
    before = lay_out(names, drawn)
    shuffle.shuffle(names)
    shuffle.shuffle(drawn)
    after = lay_out(names, drawn)
    assert before == after


def test_callers_stand_left_of_whom_they_call() -> None:
    layout = lay_out("abcd", [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")])
    x = {name: place[0] for name, place in layout.boxes.items()}
    assert x["a"] < x["b"] < x["c"]
    assert x["d"] == x["b"]  # beside, not at the far left


def test_a_line_that_passes_a_column_passes_no_box_of_it() -> None:
    layout = lay_out("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    crossing = [point for point in layout.lines["a", "c"] if point[0] == layout.boxes["b"][0]]
    assert crossing
    top = layout.boxes["b"][1]
    assert all(not top <= y <= top + BOX_HEIGHT for _, y in crossing)


def test_sixty_services_fit_beside_each_other() -> None:
    shop = large()
    edges = {(a, b) for a, some in shop.declared.items() for b in some}
    layout = lay_out(shop.declared, edges)
    sound(layout, edges)
    assert len(layout.boxes) == 60
    assert layout.width < 2000
    assert layout.height < 2600
    between = [b[1] - a[1] for a, b in pairwise(sorted(layout.boxes.values())) if a[0] == b[0]]
    assert min(between) >= BOX_HEIGHT + 8


@pytest.mark.parametrize("names", ["", "a", "ab"])
def test_without_lines_boxes_stand_in_a_row(names: str) -> None:
    layout = lay_out(names, [])
    sound(layout, set())
    assert len({y for _, y in layout.boxes.values()}) <= 1
