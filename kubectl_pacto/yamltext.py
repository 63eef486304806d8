# SPDX-License-Identifier: MIT
"""YAML as Kubernetes means it: the core types only, times stay text, no key twice.

`load_all` is for streams of objects; `load_contract` also says where in the text each path is.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

Path = tuple[str | int, ...]
MAX_NODES: Final = 200_000
# The largest whole number that the Kubernetes API takes.
BIGGEST: Final = 2**63 - 1
_INT: Final = re.compile(r"[-+]?(?:[0-9]+|0x[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """Text that is no YAML we take: what is wrong, and at which line and column (from 1; 0 unknown)."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)
        self.problem, self.line, self.column = problem, line, column


class _Loader(_BASE):  # type: ignore[misc]  # the C loader where PyYAML was built with it
    """The safe loader with the types of JSON and no others."""


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    rules = [
        ("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
        ("tag:yaml.org,2002:int", _INT, "-+0123456789"),
        ("tag:yaml.org,2002:float", _FLOAT, "-+.0123456789"),
        ("tag:yaml.org,2002:merge", re.compile(r"<<"), "<"),
        ("tag:yaml.org,2002:null", re.compile(r"~|null|Null|NULL|"), "~nN\0"),
    ]
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, firsts in rules:
        whole = re.compile(rf"(?:{pattern.pattern})\Z")
        for first in firsts:
            table.setdefault("" if first == "\0" else first, []).append((tag, whole))
    return table


def _construct_int(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    return int(text, 16 if "x" in text else 10)


_Loader.yaml_implicit_resolvers = _resolvers()
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def _translate(error: Exception) -> YamlError:
    if isinstance(error, RecursionError):
        return YamlError("is nested too deeply")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return YamlError(f"is not YAML: {problem}")
    return YamlError(f"is not YAML: {problem}", mark.line + 1, mark.column + 1)


def load_all(text: str, *, strict: bool = False) -> Iterator[Any]:
    """The documents of a stream. Raises YamlError at the first that is none.

    Strict: no mapping has a key twice, and whole numbers have 64 bits at most; kubectl takes such a
    kubeconfig, and the API server no such object.
    """
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if strict:
                _refuse(node)
            yield loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise error if isinstance(error, YamlError) else _translate(error) from None
    finally:
        loader.dispose()


def path_text(path: Path) -> str:
    """A path as people write it: spec.ports[0].name."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the document"


def _refuse(top: Any) -> None:
    """Raises YamlError for what reads one way to a person and another to a program."""
    stack, seen = [top], {id(top)}
    while stack:
        node = stack.pop()
        children = _values(node)
        for child in children:
            if isinstance(child, yaml.ScalarNode):
                if _is_too_big(child):
                    raise _at(top, child, "is a number of more than 64 bits")
            elif id(child) not in seen:
                seen.add(id(child))
                stack.append(child)
        if isinstance(node, yaml.MappingNode) and (twice := _twice(node)) is not None:
            raise _at(top, node, f"has the key {twice.value!r} twice", twice)


def _values(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return node.value if isinstance(node, yaml.SequenceNode) else [node]


def _is_too_big(node: Any) -> bool:
    if node.tag != "tag:yaml.org,2002:int" or len(node.value) < len("0x7fffffffffffffff"):
        return False
    # more digits than these are no number that Python reads, either
    digits = len(node.value.lstrip("-+0x"))
    return digits > 20 or not -BIGGEST - 1 <= int(node.value, 16 if "x" in node.value else 10) <= BIGGEST


def _twice(node: Any) -> Any | None:
    """The second node of a key that a mapping has twice."""
    keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len({(key.tag, key.value) for key in keys}) == len(keys):
        return None
    seen: set[tuple[str, str]] = set()
    for key in keys:
        if (key.tag, key.value) in seen and key.tag != "tag:yaml.org,2002:merge":
            return key
        seen.add((key.tag, key.value))
    return None


def _at(top: Any, node: Any, problem: str, mark: Any = None) -> YamlError:
    line, column = (mark or node).start_mark.line + 1, (mark or node).start_mark.column + 1
    return YamlError(f"{path_text(_path_to(top, node, set()) or ())} {problem}", line, column)


def _path_to(top: Any, wanted: Any, seen: set[int]) -> Path | None:
    """The first path that leads to a node."""
    if top is wanted:
        return ()
    if isinstance(top, yaml.ScalarNode) or id(top) in seen:
        return None
    seen.add(id(top))
    names: list[str | int] = list(range(len(top.value)))
    if isinstance(top, yaml.MappingNode):
        names = [str(key.value) for key, _ in top.value]
    for name, child in zip(names, _values(top), strict=True):
        below = _path_to(child, wanted, seen)
        if below is not None:
            return (name, *below)
    return None


@dataclass(slots=True)
class Document:
    """One decoded document, and the line and column (from 1) of each path in it."""

    data: Any = None
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def place(self, path: Path) -> str:
        """The nearest known place of a path, as `line L, column C`; empty if none is known."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                line, column = self.places[path[:length]]
                return f"line {line}, column {column}"
        return ""


def load_contract(text: str) -> Document:
    """The one document of a text, in which no mapping has a key twice. Raises YamlError."""
    loader = _Loader(text)
    document = Document()
    try:
        node = loader.get_single_node()
        if node is not None:
            _Walk(loader, document).visit(node, ())
            document.data = loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise error if isinstance(error, YamlError) else _translate(error) from None
    finally:
        loader.dispose()
    return document


class _Walk:
    """Notes where things are, and refuses what reads one way to a person and another to a program."""

    def __init__(self, loader: Any, document: Document) -> None:
        self._loader, self._document, self._left = loader, document, MAX_NODES

    def visit(self, node: Any, path: Path) -> None:
        # aliases are followed: the count is of what a reader of the data would walk
        self._left -= 1
        if self._left < 0:
            raise YamlError("has too many nodes (are aliases nested?)")
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        self._document.places.setdefault(path, place)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, (*path, index))
        elif isinstance(node, yaml.MappingNode):
            self._visit_mapping(node, path)

    def _visit_mapping(self, node: Any, path: Path) -> None:
        seen: set[Hashable] = set()
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            line, column = key_node.start_mark.line + 1, key_node.start_mark.column + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                raise YamlError("has a key that is not a string: quote it", line, column)
            key = key_node.value
            if key in seen:
                raise YamlError(f"has the key {key!r} twice", line, column)
            seen.add(key)
            self._document.places[(*path, key)] = (line, column)
            self.visit(value_node, (*path, key))
