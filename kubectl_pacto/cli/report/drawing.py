# SPDX-License-Identifier: MIT
"""The graph as inline SVG: boxes with name and verdict, arrows by state. The page's style has the colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement

from kubectl_pacto.cli.report.graph import State
from kubectl_pacto.cli.report.layout import BOX_HEIGHT, BOX_WIDTH, Layout, Point, lay_out
from kubectl_pacto.cli.terminal import printable

Raw = Mapping[str, Any]
LONGEST_NAME: Final = 24
# the class of an arrow, and what is written beside it; what is as it should be needs no words
STATES: Final[Mapping[str, tuple[str, str]]] = {
    State.FAILING: ("failing", "fails"),
    State.UNDECLARED: ("undeclared", "not declared"),
    State.UNRESOLVED: ("unresolved", ""),
    State.SILENT: ("silent", ""),
    State.SEEN: ("seen", ""),
}


def draw(graph: Raw) -> Element:
    """The picture of a graph document."""
    calls: Sequence[Raw] = graph["calls"]
    order = list(State)
    worst: dict[tuple[str, str], Raw] = {}
    for call in sorted(calls, key=lambda one: order.index(State(one["state"])), reverse=True):
        worst[call["caller"], call["callee"]] = call
    layout = lay_out((box["id"] for box in graph["boxes"]), worst)
    svg = Element("svg", _size(layout) | {"role": "img", "aria-labelledby": "graph-title graph-text"})
    SubElement(svg, "title", {"id": "graph-title"}).text = "Who calls whom"
    text = f"{len(graph['boxes'])} services and {len(worst)} calls; the table below lists each of them."
    SubElement(svg, "desc", {"id": "graph-text"}).text = text
    _arrow_heads(svg)
    for edge, points in layout.lines.items():
        _line(svg, worst[edge], points)
    for box in graph["boxes"]:
        _box(svg, box, layout.boxes[box["id"]])
    return svg


def legend() -> Element:
    """A line for each state of a call, as it is drawn."""
    top = Element("ul", {"class": "legend"})
    for state in State:
        name = STATES[state][0]
        item = SubElement(top, "li")
        svg = SubElement(item, "svg", {"width": "44", "height": "10", "aria-hidden": "true"})
        SubElement(svg, "path", {"class": f"call {name}", "d": "M2 5H42"})
        SubElement(item, "span").text = f" {state.value}"
    return top


def _size(layout: Layout) -> dict[str, str]:
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    return {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}


def _arrow_heads(svg: Element) -> None:
    kept = SubElement(svg, "defs")
    for name, _ in STATES.values():
        shape = {"viewBox": "0 0 8 8", "refX": "7.5", "refY": "4", "orient": "auto"}
        shape |= {"markerWidth": "9", "markerHeight": "9", "markerUnits": "userSpaceOnUse"}
        marker = SubElement(kept, "marker", {"id": f"head-{name}", **shape})
        SubElement(marker, "path", {"class": f"head {name}", "d": "M0 0L8 4L0 8z"})


def _line(svg: Element, call: Raw, points: Sequence[Point]) -> None:
    name, label = STATES[call["state"]]
    group = SubElement(svg, "g")
    said = f"{call['caller']} to {call['callee']}: {call['state']}"
    SubElement(group, "title").text = printable(f"{said}. {call['why']}" if call["why"] else said)
    path = {"class": f"call {name}", "d": _curve(points), "marker-end": f"url(#head-{name})"}
    SubElement(group, "path", path)
    if label:
        (x1, y1), (x2, y2) = points[-2], points[-1]
        at = {"x": f"{(x1 + x2) / 2:.1f}", "y": f"{(y1 + y2) / 2 - 3:.1f}"}
        SubElement(group, "text", {"class": f"label {name}", **at}).text = label


def _curve(points: Sequence[Point]) -> str:
    """Level where it leaves and arrives, straight where it passes a column."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for index, ((x1, y1), (x2, y2)) in enumerate(pairwise(points)):
        if index % 2:
            parts.append(f"L{x2:.1f} {y2:.1f}")
        else:
            middle = (x1 + x2) / 2
            parts.append(f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}")
    return "".join(parts)


def _box(svg: Element, box: Raw, at: Point) -> None:
    x, y = at
    verdict = box["contractStatus"] or "no Pacto"
    namespace, slash, name = box["id"].rpartition("/")
    group = SubElement(svg, "g", {"class": f"box {class_of(verdict)}"})
    SubElement(group, "title").text = printable(f"{box['id']}: {verdict}")
    size = {"width": f"{BOX_WIDTH:.0f}", "height": f"{BOX_HEIGHT:.0f}", "rx": "6"}
    SubElement(group, "rect", {"x": f"{x:.1f}", "y": f"{y:.1f}", **size})
    first = SubElement(group, "text", {"class": "name", "x": f"{x + 10:.1f}", "y": f"{y + 18:.1f}"})
    first.text = shorten(printable(name or box["id"]))
    second = SubElement(group, "text", {"class": "verdict", "x": f"{x + 10:.1f}", "y": f"{y + 35:.1f}"})
    second.text = shorten(f"{verdict} · {printable(namespace)}" if slash else verdict, LONGEST_NAME + 6)


def class_of(word: str) -> str:
    """The class that the style knows a word of ours by; no other word has more than letters in it."""
    return "".join(one for one in word if one.isascii() and one.isalpha())


def shorten(text: str, length: int = LONGEST_NAME) -> str:
    """A text that fits into a box; its end is what tells generated names apart."""
    return text if len(text) <= length else f"{text[: length - 9]}…{text[-8:]}"
