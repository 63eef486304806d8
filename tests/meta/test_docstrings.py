# SPDX-License-Identifier: MIT
"""Public names say what they promise."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.sources import PACKAGES, ROOT, files

SHARE = 0.85
MODULES = [
    name
    for name in files(".py")
    if name.split("/")[-2:][0] != "tests" and any(f"{package}/" in name for package in PACKAGES)
    if not name.startswith("tests/")
]
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def public(node: ast.Module | ast.ClassDef, owner: str = "") -> Iterator[tuple[str, bool]]:
    """Public names below a node, and whether each has a docstring."""
    for child in node.body:
        if isinstance(child, DEFINITIONS) and not child.name.startswith("_"):
            yield f"{owner}{child.name}", ast.get_docstring(child) is not None
            if isinstance(child, ast.ClassDef):
                yield from public(child, f"{child.name}.")


@pytest.mark.parametrize("package", PACKAGES)
def test_most_public_names_have_a_docstring(package: str) -> None:
    found = [
        (f"{name}: {one}", documented)
        for name in MODULES
        if f"{package}/" in name
        for one, documented in public(ast.parse((ROOT / name).read_text()))
    ]
    without = [one for one, documented in found if not documented]
    assert len(without) <= (1 - SHARE) * len(found), "\n".join(without)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is_for(name: str) -> None:
    text = (ROOT / name).read_text()
    code = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert not code or ast.get_docstring(ast.parse(text))
