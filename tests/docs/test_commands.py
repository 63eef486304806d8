# SPDX-License-Identifier: MIT
"""What the documentation tells a reader to type, typed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.blocks import Block, blocks, in_order, pages, parse, type_in
from tests.support.sources import ROOT

ALL = [block for page in pages() for block in blocks(page)]


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.name)
def test_a_block_says_how_it_is_tested(block: Block) -> None:
    assert block.tier in ("unit", "cluster", "none"), "classify it: see tests/support/blocks.py"
    assert block.tier != "none" or len(block.why) > 15, "say why it is not tested here, or what tests it"


@pytest.mark.parametrize("block", [one for one in ALL if one.tier == "unit"], ids=lambda block: block.name)
def test_a_block_that_needs_no_cluster_works_and_prints_what_is_shown(block: Block, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "work" / "docs" / "examples")
    printed = type_in(block, tmp_path, tmp_path / "none")
    missing = in_order(block.prints, printed)
    assert not missing, f"{missing!r} is not printed:\n{printed}"


def test_there_are_blocks_of_each_kind() -> None:
    assert {block.tier for block in ALL} == {"unit", "cluster", "none"}


def test_marks_prints_and_defaults_are_read() -> None:
    text = (
        "<!-- test: unit -->\n```sh\na\nb\n```\n\n<!-- prints -->\n```text\nout\n```\n"
        "words\n```sh\nc\n```\n\n<!-- not tested: a reason -->\n```console\nd\n```\n```yaml\nx: 1\n```\n"
    )
    assert parse("p", text) == [
        Block("p", 5, "a\nb", "unit", "", ("out",)),
        Block("p", 14, "c", ""),
        Block("p", 19, "d", "none", "a reason"),
    ]
    assert parse("p", "```sh\nc\n```\n", "elsewhere") == [Block("p", 3, "c", "none", "elsewhere")]


def test_lines_must_come_in_order() -> None:
    assert in_order(("a  b", "c"), "x a b\nc d\n") == ""
    assert in_order(("c", "a b"), "x a b\nc d\n") == "a b"
