# SPDX-License-Identifier: MIT
"""The README's picture shows what the demo printed, and that is what it prints today."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

from kubectl_pacto.cli.demo.report import render
from tests.unit.cli.demo.test_report import outcome

ROOT = Path(__file__).parents[4]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "render_demo.py"))
PRINTED = (ROOT / "docs" / "img" / "demo.txt").read_text(encoding="utf-8")


def test_the_picture_is_made_from_the_text() -> None:
    assert SCRIPT["picture"](PRINTED) == (ROOT / "docs" / "img" / "demo.svg").read_text(encoding="utf-8")


def test_the_picture_is_well_formed_and_shows_every_word() -> None:
    made = ET.fromstring(SCRIPT["picture"](PRINTED))
    shown = " ".join(text.text or "" for text in made.iter("{http://www.w3.org/2000/svg}text"))
    assert shown.split() == f"{SCRIPT['PROMPT']}\n{PRINTED}".split()


def test_the_text_is_what_the_demo_prints_but_for_its_numbers() -> None:
    _, _, printed = PRINTED.partition("\n\n")
    today = render(outcome(), "table")
    assert _shape(printed) == _shape(today)


def _shape(text: str) -> list[str]:
    return [re.sub(r"\d+\.\d s|\d+ (?=connected|failed)", "N", line) for line in text.splitlines()]


def test_the_readme_shows_the_picture_and_says_how_to_get_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/img/demo.svg)" in readme
    assert "make demo" in readme
    assert "make test" in readme
