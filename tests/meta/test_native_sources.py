# SPDX-License-Identifier: MIT
"""Every compiled module has its stub, its twin and its test, and says its error road."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

import pytest

from tests.support.sources import ROOT, files

MODULES = [PurePosixPath(name) for name in files(".pyx")]
NATIVE = ROOT / "ext" / "pacto_native"


def names(text: str) -> set[str]:
    """Public functions and classes that a stub or module declares."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(text).body if isinstance(node, kinds) and node.name[0] != "_"}


def test_there_are_modules_to_look_at() -> None:
    assert {module.stem for module in MODULES} >= {"ring", "procnet", "procfs"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_has_stub_twin_and_test(module: PurePosixPath) -> None:
    stub = ROOT / module.with_suffix(".pyi")
    assert stub.exists()
    assert names(stub.read_text()) <= names((NATIVE / "reference.py").read_text())
    assert (ROOT / "tests" / "native" / f"test_{module.stem}.py").exists()


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_stub_declares_what_the_module_defines(module: PurePosixPath) -> None:
    text = (ROOT / module).read_text()
    defined = set(re.findall(r"^(?:def|cdef class|class) ([a-zA-Z]\w*)", text, re.MULTILINE))
    assert names((ROOT / module.with_suffix(".pyi")).read_text()) == defined


@pytest.mark.parametrize("name", files(".pyx", ".pxd"))
def test_a_c_level_function_states_its_error_road(name: str) -> None:
    text = (ROOT / name).read_text()
    silent = [
        head
        for head in re.findall(r"^ *cp?def (?!class|extern)[^\n]*\([^)]*\)[^\n]*:$", text, re.MULTILINE)
        # one that returns a Python object raises as Python does
        if not re.search(r"\bnoexcept\b|\bexcept\b|cp?def (object|tuple|list|bytes) ", head)
    ]
    assert not silent


@pytest.mark.parametrize("name", [name for name in files(".py", ".pyx") if not name.startswith("tests/")])
def test_the_product_never_reads_a_twin(name: str) -> None:
    assert not re.search(r"^\s*(from|import|cimport).*\breference\b", (ROOT / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", files(".pyx"))
def test_no_source_is_included_into_another(name: str) -> None:
    assert not re.search(r"^include\b", (ROOT / name).read_text(), re.MULTILINE)
