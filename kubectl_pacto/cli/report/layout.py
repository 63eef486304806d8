# SPDX-License-Identifier: MIT
"""Where the boxes and lines of a graph go: callers on the left, whom they call on the right.

Layers by the longest path, order within them by barycentres, each part of the graph below the one
before. Pure, and the same for the same graph in any order: two reports can be compared by eye.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

Edge = tuple[str, str]
Point = tuple[float, float]

BOX_WIDTH: Final = 188.0
BOX_HEIGHT: Final = 44.0
COLUMN: Final = 300.0
ROW: Final = 64.0
LANE: Final = 22.0  # between lines that pass a column
MARGIN: Final = 16.0
GAP: Final = 40.0  # between parts
GRID: Final = 4  # boxes without a line, in a row
SWEEPS: Final = 12


@dataclass(frozen=True, slots=True)
class Layout:
    """The left upper corner of each box, the points of each line, and the size of all."""

    boxes: Mapping[str, Point]
    lines: Mapping[Edge, Sequence[Point]]
    width: float
    height: float


def lay_out(names: Iterable[str], edges: Iterable[Edge]) -> Layout:
    """Place boxes and lines; an edge from a box to itself has none."""
    all_names = sorted(set(names))
    all_edges = sorted({(a, b) for a, b in edges if a != b})
    boxes: dict[str, Point] = {}
    lines: dict[Edge, Sequence[Point]] = {}
    width, top = MARGIN, MARGIN
    alone = [name for name in all_names if not any(name in edge for edge in all_edges)]
    for part in _parts(set(all_names) - set(alone), all_edges):
        inner = [edge for edge in all_edges if edge[0] in part]
        placed = _Part(sorted(part), inner)
        bottom = top
        for name, (x, y) in placed.boxes.items():
            boxes[name] = (x + MARGIN, y + top)
            width, bottom = max(width, x + MARGIN + BOX_WIDTH), max(bottom, y + top + BOX_HEIGHT)
        for edge, points in placed.lines.items():
            lines[edge] = [(x + MARGIN, y + top) for x, y in points]
            bottom = max([bottom, *(y for _, y in lines[edge])])
        top = bottom + GAP
    for index, name in enumerate(alone):
        x = MARGIN + (index % GRID) * (BOX_WIDTH + GAP)
        boxes[name] = (x, top + (index // GRID) * ROW)
        width = max(width, x + BOX_WIDTH)
    height = max((y + BOX_HEIGHT for _, y in boxes.values()), default=0.0)
    return Layout(boxes, lines, width + MARGIN, max(height, top - GAP) + MARGIN)


def _parts(names: set[str], edges: Sequence[Edge]) -> list[set[str]]:
    """What hangs together, the largest first."""
    near: defaultdict[str, set[str]] = defaultdict(set)
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    parts, left = [], set(names)
    while left:
        part, waiting = set(), [min(left)]
        while waiting:
            name = waiting.pop()
            if name not in part:
                part.add(name)
                waiting.extend(near[name])
        parts.append(part)
        left -= part
    return sorted(parts, key=lambda part: (-len(part), min(part)))


class _Part:
    """One part: from layers to places. A line that passes a column has a place in it, too."""

    def __init__(self, names: Sequence[str], edges: Sequence[Edge]) -> None:
        self._forward = _without_cycles(names, edges)
        self._level = _levels(names, self._forward)
        self._chains = {edge: self._chain(edge) for edge in edges}
        self._columns = self._ordered()
        self._y = self._heights()
        self.boxes = {name: (self._level[name] * COLUMN, self._y[name]) for name in names}
        self.lines = self._routes()

    def _chain(self, edge: Edge) -> list[str]:
        """An edge from left to right, with a name for each column that it passes."""
        a, b = edge if edge in self._forward else (edge[1], edge[0])
        passed = range(self._level[a] + 1, self._level[b])
        middle = [f"\0{a}\0{b}\0{level}" for level in passed]
        self._level.update(zip(middle, passed, strict=True))
        return [a, *middle, b]

    def _ordered(self) -> list[list[str]]:
        columns: list[list[str]] = [[] for _ in range(max(self._level.values()) + 1)]
        for name in sorted(self._level, key=lambda one: one.removeprefix("\0")):
            columns[self._level[name]].append(name)
        self._left, self._right = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for chain in self._chains.values():
            for a, b in pairwise(chain):
                self._right[a].add(b)
                self._left[b].add(a)
        best, fewest = columns, self._crossings(columns)
        for sweep in range(SWEEPS):
            forward = sweep % 2 == 0
            order = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
            columns = [list(column) for column in columns]
            for index in order:
                beside = columns[index - 1 if forward else index + 1]
                place = {name: position for position, name in enumerate(beside)}
                near = self._left if forward else self._right
                columns[index].sort(key=lambda name, p=place, n=near: _mean(p[one] for one in n[name]))  # type: ignore[misc]
            now = self._crossings(columns)
            if now < fewest:
                best, fewest = columns, now
        return best

    def _crossings(self, columns: Sequence[Sequence[str]]) -> int:
        found = 0
        for before, after in pairwise(columns):
            place = {name: position for position, name in enumerate(after)}
            ends = [place[b] for a in before for b in sorted(self._right[a], key=place.__getitem__)]
            found += sum(one > other for at, one in enumerate(ends) for other in ends[at + 1 :])
        return found

    def _heights(self) -> dict[str, float]:
        y: dict[str, float] = {}
        for column in self._columns:
            at = 0.0
            for name in column:
                y[name] = at
                at += _room(name)
        for sweep in range(SWEEPS):
            near = self._left if sweep % 2 == 0 else self._right
            for column in self._columns if sweep % 2 == 0 else reversed(self._columns):
                wanted = {
                    name: _mean(_middle(one, y) for one in near[name]) - _half(name)
                    if near[name]
                    else y[name]
                    for name in column
                }
                y.update(_spread(column, wanted))
        least = min(y.values())
        return {name: value - least for name, value in y.items()}

    def _routes(self) -> dict[Edge, list[Point]]:
        ports = _Ports(self._chains, self._y)
        found: dict[Edge, list[Point]] = {}
        for edge, chain in self._chains.items():
            left, right = chain[0], chain[-1]
            points = [(self._level[left] * COLUMN + BOX_WIDTH, ports.of(left, edge))]
            for name in chain[1:-1]:
                x, y = self._level[name] * COLUMN, _middle(name, self._y)
                points += [(x, y), (x + BOX_WIDTH, y)]
            points.append((self._level[right] * COLUMN, ports.of(right, edge)))
            found[edge] = points if edge in self._forward else points[::-1]
        return found


class _Ports:
    """Where along its side a box's lines begin or end: spread, in the order of their other ends."""

    def __init__(self, chains: Mapping[Edge, Sequence[str]], y: Mapping[str, float]) -> None:
        sides: defaultdict[tuple[str, int], list[tuple[float, Edge]]] = defaultdict(list)
        for edge, chain in chains.items():
            sides[chain[0], 1].append((_middle(chain[1], y), edge))
            sides[chain[-1], 0].append((_middle(chain[-2], y), edge))
        self._at: dict[tuple[str, Edge], float] = {}
        for (name, _), ends in sides.items():
            step = (BOX_HEIGHT - 8) / (len(ends) + 1)
            for position, (_, edge) in enumerate(sorted(ends), start=1):
                self._at[name, edge] = y[name] + 4 + step * position

    def of(self, name: str, edge: Edge) -> float:
        return self._at[name, edge]


def _without_cycles(names: Sequence[str], edges: Sequence[Edge]) -> set[Edge]:
    """The edges but those that lead back, found from the names with fewest callers on."""
    after: defaultdict[str, list[str]] = defaultdict(list)
    callers: defaultdict[str, int] = defaultdict(int)
    for a, b in edges:
        after[a].append(b)
        callers[b] += 1
    kept: set[Edge] = set()
    open_now: set[str] = set()
    done: set[str] = set()
    for start in sorted(names, key=lambda name: (callers[name], name)):
        stack = [(start, iter(after[start]))] if start not in done else []
        open_now.update(name for name, _ in stack)
        while stack:
            name, rest = stack[-1]
            below = next(rest, None)
            if below is None:
                stack.pop()
                open_now.discard(name)
                done.add(name)
            elif below not in open_now:
                kept.add((name, below))
                if below not in done:
                    open_now.add(below)
                    stack.append((below, iter(after[below])))
    return kept


def _levels(names: Sequence[str], edges: set[Edge]) -> dict[str, int]:
    """The column of each name: right of all who call it; whom nobody calls stands beside its first."""
    after: defaultdict[str, list[str]] = defaultdict(list)
    waiting = dict.fromkeys(names, 0)
    for a, b in sorted(edges):
        after[a].append(b)
        waiting[b] += 1
    called = {b for _, b in edges}
    level = dict.fromkeys(names, 0)
    ready = [name for name in names if waiting[name] == 0]
    while ready:
        name = ready.pop()
        for below in after[name]:
            level[below] = max(level[below], level[name] + 1)
            waiting[below] -= 1
            if waiting[below] == 0:
                ready.append(below)
    for name in names:
        if name not in called and after[name]:
            level[name] = min(level[below] for below in after[name]) - 1
    return level


def _spread(column: Sequence[str], wanted: Mapping[str, float]) -> dict[str, float]:
    """As near to what is wanted as order and room allow: the least squares, by pooling neighbours."""
    offsets, at = [], 0.0
    for name in column:
        offsets.append(at)
        at += _room(name)
    pools: list[tuple[float, int]] = []  # sum and number of those that stand as near as they may
    for name, offset in zip(column, offsets, strict=True):
        total, count = wanted[name] - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, number = pools.pop()
            total, count = total + before, count + number
        pools.append((total, count))
    places = [total / count for total, count in pools for _ in range(count)]
    return {name: place + offset for name, place, offset in zip(column, places, offsets, strict=True)}


def _is_box(name: str) -> bool:
    return not name.startswith("\0")


def _room(name: str) -> float:
    return ROW if _is_box(name) else LANE


def _half(name: str) -> float:
    return BOX_HEIGHT / 2 if _is_box(name) else 0.0


def _middle(name: str, y: Mapping[str, float]) -> float:
    return y[name] + _half(name)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
