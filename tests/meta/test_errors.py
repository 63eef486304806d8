# SPDX-License-Identifier: MIT
"""One tree of errors: defined in modules of errors, each leaf's message and hint in order."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
import string
from pathlib import PurePosixPath

import pytest

from kubectl_pacto.cli.main import REMEDIES
from kubectl_pacto.errors import PactoError, template_of
from tests.support.sources import ROOT, files

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "generate.py"))
PRODUCT = [name for name in files(".py") if name.startswith(("kubectl_pacto/", "agent/"))]


def tree() -> dict[str, type[PactoError]]:
    """The errors by name."""
    for module in SCRIPT["error_modules"]():
        importlib.import_module(module)
    return {
        one.__name__: one
        for one in (PactoError, *SCRIPT["leaves"](PactoError))
        if one.__module__.startswith("kubectl_pacto.")
    }


@pytest.mark.parametrize("name", PRODUCT)
def test_errors_are_defined_in_modules_of_errors(name: str) -> None:
    names = tree().keys()
    defined = [
        node.name
        for node in ast.walk(ast.parse((ROOT / name).read_text()))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name) and base.id in names
    ]
    assert not defined or PurePosixPath(name).stem.endswith("errors")


def test_every_error_has_an_exit_status_a_template_and_a_plain_hint() -> None:
    for name, one in tree().items():
        assert one.exit_code in (1, 2, 3), name
        assert [word for _, word, _, _ in string.Formatter().parse(one.__doc__ or "") if word is not None], (
            name
        )
        assert re.fullmatch(r"([a-z]+(-[a-z]+)*)?", one.hint), name
        assert not one.hint or one.hint in REMEDIES, f"{name}: its hint names no remedy"


def test_every_template_is_its_docstring_as_documentation_has_it() -> None:
    for name, one in tree().items():
        assert template_of(one) == inspect.cleandoc(one.__doc__ or ""), name


@pytest.mark.parametrize("name", PRODUCT)
def test_no_decision_is_made_on_a_messages_text(name: str) -> None:
    # `"words" in str(error)` is how it would look
    assert not re.search(r"\b(not )?in (str|repr)\((e|err|error|exc)\)", (ROOT / name).read_text())
