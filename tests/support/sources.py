# SPDX-License-Identifier: MIT
"""The project's own files, and the functions in them: what tests/meta measures."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
GENERATED: Final = frozenset({"docs/errors.md"})
PACKAGES: Final = {"kubectl_pacto": ".", "pacto_agent": "agent", "pacto_native": "ext"}


def with_sources() -> dict[str, str]:
    """This process's environment, for a Python that finds the packages of this checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in PACKAGES.values())}


@cache
def tracked() -> tuple[str, ...]:
    """Files of the checkout as git knows them, new ones too; an unpacked sdist has no git: all its files."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return tuple(name for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file())
    hidden = re.compile(r"(^|/)(\.|build/|dist/|__pycache__/|[^/]*\.egg-info/)|\.(so|o|pyc)$")
    every = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    return tuple(name for name in sorted(every) if not hidden.search(name))


def files(*suffixes: str) -> list[str]:
    """Tracked files with one of these suffixes."""
    return [name for name in tracked() if name.endswith(suffixes)]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: where, how long without its docstring, how many arguments by position."""

    name: str
    line: int
    lines: int
    positional: int


def _python_function(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str) -> Function:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(node.body) > 1:
        first = node.body[1]
    arguments = [one.arg for one in [*node.args.posonlyargs, *node.args.args]]
    bound = bool(owner) and arguments[:1] in (["self"], ["cls"])
    lines = (node.end_lineno or node.lineno) - first.lineno + 1
    # a class made in a function is measured by its own methods
    lines -= sum((one.end_lineno or 0) - one.lineno for one in node.body if isinstance(one, ast.ClassDef))
    return Function(f"{owner}{node.name}", node.lineno, lines, len(arguments) - bound)


def python_functions(text: str) -> Iterator[Function]:
    """Functions of a Python text, nested ones counted for themselves and in their owner."""

    def walk(node: ast.AST, owner: str) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield _python_function(child, owner)
            yield from walk(child, f"{child.name}." if isinstance(child, ast.ClassDef) else owner)

    return walk(ast.parse(text), "")


def c_functions(text: str) -> Iterator[Function]:
    """Functions of a C text: a line in the first column that ends in a bracket, then a block alone."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line != "{" or at == 0 or not lines[at - 1].endswith(")"):
            continue
        start = at - 1
        while start and lines[start][:1] in ("\t", " "):
            start -= 1
        end = lines.index("}", at)
        head = " ".join(lines[start:at])
        named = re.search(r"(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)$", head)
        arguments = named[2] if named else ""
        count = 0 if arguments.strip() in ("", "void") else arguments.count(",") + 1
        yield Function(named[1] if named else head, start + 1, end - at - 1, count)


def cython_functions(text: str) -> Iterator[Function]:
    """Functions of a Cython text, by indent; the docstring counts, so the bound is the stricter."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        named = re.match(r"( *)(?:def|cp?def [^=:]*?)\b ?(\w+)\(", line)
        if named is None or " extern " in line:
            continue
        close = next(i for i in range(at, len(lines)) if lines[i].rstrip().endswith(":"))
        end = close + 1
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(named[1] + "    ")):
            end += 1
        body = [one for one in lines[close + 1 : end] if one.strip()]
        head = " ".join(lines[at : close + 1])
        arguments = head[head.index("(") + 1 : head.rindex(")")].partition("*,")[0].strip().rstrip(",")
        words = [one.strip() for one in arguments.split(",") if one.strip() not in ("", "self")]
        yield Function(named[2], at + 1, len(body), len(words))


def functions(name: str) -> list[Function]:
    """The functions of one file, by its suffix."""
    text = (ROOT / name).read_text()
    if name.endswith((".c", ".h")):
        return list(c_functions(text))
    if name.endswith(".pyx"):
        return list(cython_functions(text))
    return list(python_functions(text))
