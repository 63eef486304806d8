# SPDX-License-Identifier: MIT
"""The picture of the README from what the demo really printed: docs/img/demo.txt to demo.svg.

    sudo .venv/bin/kubectl-pacto demo >docs/img/demo.txt 2>&1
    .venv/bin/python scripts/render_demo.py

A test holds the two files together. No library: SVG is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

IMAGES: Final = Path(__file__).parent.parent / "docs" / "img"
PROMPT: Final = "$ sudo kubectl pacto demo"

COLUMN: Final = 7.8  # pixels of one character at this size
LINE: Final = 18
MARGIN: Final = 20
BAR: Final = 34
BACKGROUND: Final = "#161b22"
FOREGROUND: Final = "#d0d7de"
FONT: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"

COLUMNS: Final = re.compile(r"\S+(?: \S+)*")
RED, YELLOW, GREEN, BLUE, DIM = "#ff7b72", "#e3b341", "#56d364", "#79c0ff", "#8b949e"
# the first pattern that matches at a place decides; the order is from special to general
COLOURS: Final = (
    (re.compile(r"^ +\d+\.\d s  .*"), DIM),
    (re.compile(r"^\$ .*"), BLUE),
    (re.compile(r"^[A-Z][A-Z ]+$"), DIM),
    (re.compile(r"^error\b|\b(?:INTERFACE_ABSENT|DEPENDENCY_UNREACHABLE|NonCompliant)\b"), RED),
    (re.compile(r"^warning\b|\bDEPENDENCY_UNDECLARED\b"), YELLOW),
    (re.compile(r"^ok\b|\bCompliant\b|^All \d findings stand.*"), GREEN),
    (re.compile(r"^ {9}(?:collector|kubernetes|kernel|contract|coverage|window)\b"), DIM),
    (re.compile(r"(?<=collector  )(?:k8s-observer\+)?ebpf"), BLUE),
)


def pieces(line: str) -> Iterator[tuple[str, str]]:
    """The line in coloured pieces."""
    at = 0
    while at < len(line):
        found = [
            (match.start(), order, match, colour)
            for order, (pattern, colour) in enumerate(COLOURS)
            if (match := pattern.search(line, at))
        ]
        if not found:
            break
        start, _, match, colour = min(found, key=lambda item: item[:2])
        if start > at:
            yield line[at:start], FOREGROUND
        yield match[0], colour
        at = match.end()
    if at < len(line):
        yield line[at:], FOREGROUND


def picture(text: str) -> str:
    """The SVG of a terminal that shows `text` below the prompt."""
    lines = [PROMPT, *text.rstrip("\n").split("\n")]
    width = round(2 * MARGIN + COLUMN * max(map(len, lines)))
    height = BAR + 2 * MARGIN + LINE * len(lines)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="What kubectl pacto demo prints">'
    )
    made = [
        "<!-- made by scripts/render_demo.py from demo.txt -->",
        head,
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
        *(
            f'<circle cx="{MARGIN + 18 * number}" cy="{BAR / 2:g}" r="5.5" fill="{colour}"/>'
            for number, colour in enumerate((RED, YELLOW, GREEN))
        ),
        f'<g font-family="{FONT}" font-size="13">',
        *(_line(number, line) for number, line in enumerate(lines) if line),
        "</g>",
        "</svg>",
    ]
    return "\n".join(made) + "\n"


def _line(number: int, line: str) -> str:
    y = BAR + MARGIN + LINE * number
    spans, at = [], 0
    for piece, colour in pieces(line):
        # every column has its own place: it stands there whatever font the reader has
        for column in COLUMNS.finditer(piece):
            x, length = MARGIN + COLUMN * (at + column.start()), COLUMN * len(column[0])
            spans.append(
                f'<text x="{x:.1f}" y="{y}" fill="{colour}" textLength="{length:.1f}">'
                f"{escape(column[0], quote=False)}</text>"
            )
        at += len(piece)
    return "".join(spans)


def main() -> None:
    """Write the picture."""
    text = (IMAGES / "demo.txt").read_text(encoding="utf-8")
    (IMAGES / "demo.svg").write_text(picture(text), encoding="utf-8")


if __name__ == "__main__":
    main()
