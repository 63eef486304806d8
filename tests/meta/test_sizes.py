# SPDX-License-Identifier: MIT
"""Files, functions and argument lists stay short (house numbers); an exception says why, here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sources import ROOT, c_functions, cython_functions, files, functions, python_functions

CODE = files(".py", ".pyx", ".pxd", ".c", ".h")
FILE_LINES = 400
TEST_FILE_LINES = 500
FUNCTION_LINES = 40
ARGUMENTS = 6

# name of a file or FILE:FUNCTION, and why it may be longer
EXCEPTIONS: dict[str, str] = {}


def is_test(name: str) -> bool:
    """Whether the looser bound holds."""
    return name.startswith("tests/")


@pytest.mark.parametrize("name", CODE)
def test_a_file_is_short(name: str) -> None:
    lines = (ROOT / name).read_text().count("\n")
    assert lines <= (TEST_FILE_LINES if is_test(name) else FILE_LINES) or name in EXCEPTIONS


@pytest.mark.parametrize("name", files(".py", ".pyx", ".c", ".h"))
def test_functions_are_short_and_take_few_arguments(name: str) -> None:
    long = [
        f"{name}:{one.line} {one.name}: {one.lines} lines, {one.positional} arguments"
        for one in functions(name)
        if (one.lines > FUNCTION_LINES or (one.positional > ARGUMENTS and not is_test(name)))
        and f"{name}:{one.name}" not in EXCEPTIONS
    ]
    assert not long, "\n".join(long)


def test_an_exception_still_exists_and_says_why() -> None:
    for entry, why in EXCEPTIONS.items():
        name, _, function = entry.partition(":")
        assert Path(ROOT, name).exists()
        assert not function or function in {one.name for one in functions(name)}
        assert len(why) > 20


def test_the_measure_sees_python() -> None:
    text = 'class A:\n    def f(self, a, b, *, c):\n        """Doc."""\n        x = 1\n        return x\n'
    (one,) = python_functions(text)
    assert (one.name, one.line, one.lines, one.positional) == ("A.f", 2, 2, 2)


def test_the_measure_sees_c() -> None:
    text = "static int f(int a,\n\t     char *(*b)(void), int c)\n{\n\tif (a) {\n\t}\n\treturn 0;\n}\n"
    (one,) = c_functions(text)
    assert (one.name, one.line, one.lines, one.positional) == ("f", 1, 3, 3)


def test_the_measure_sees_cython() -> None:
    text = (
        "cdef class A:\n    def f(self, int a, *, int b):\n        cdef int c = 1\n\n        return c\n"
        "cdef tuple g(int a,\n             int b):\n    return (a,\n            b)\nx = 1\n"
    )
    one, two = cython_functions(text)
    assert (one.name, one.line, one.lines, one.positional) == ("f", 2, 2, 1)
    assert (two.name, two.line, two.lines, two.positional) == ("g", 6, 2, 2)
