# SPDX-License-Identifier: MIT
"""The documents of a file or of stdin, as JSON or YAML: bounded, and nothing that reads in two ways.

What one reader takes and another drops is refused with its place: a key twice (the last one would
stand, silently), a whole number that 64 bits cannot hold, half of a character.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from kubectl_pacto.errors import UnreadableInput
from kubectl_pacto.yamltext import BIGGEST, YamlError, load_all, path_text

STDIN: Final = "-"
# A bundle of ten thousand Pactos is a fifth of this. A device or a pipe may have no end.
MAX_BYTES: Final = 1 << 30
_CHUNK: Final = 1 << 20
_DIGITS: Final = len(str(BIGGEST))
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def read_text(file: str, limit: int = MAX_BYTES) -> str:
    """The text of a file, of stdin for `-`, of `limit` bytes at most. Raises UnreadableInput."""
    try:
        if file == STDIN:
            if sys.stdin is None:
                raise UnreadableInput(file=file, problem="cannot be read: standard input is closed")
            return _read(sys.stdin.buffer, file, limit)
        with Path(file).open("rb") as stream:
            return _read(stream, file, limit)
    except OSError as error:
        raise UnreadableInput(file=file, problem=f"cannot be read: {error.strerror}") from None


def _read(stream: BinaryIO, file: str, limit: int) -> str:
    """Piece by piece, so that what is no text ends at its first piece."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    parts, size = [], 0
    while chunk := stream.read(_CHUNK):
        zero = chunk.find(0)
        if zero >= 0:
            raise UnreadableInput(file=file, problem=f"is not text (byte {size + zero} is zero)")
        try:
            parts.append(decoder.decode(chunk))
        except UnicodeDecodeError as error:
            raise UnreadableInput(
                file=file, problem=f"is not UTF-8 text (byte {size + error.start})"
            ) from None
        size += len(chunk)
        if size > limit:
            problem = f"has more than {limit >> 20} MiB: give the objects in several files and runs"
            raise UnreadableInput(file=file, problem=problem)
    try:
        parts.append(decoder.decode(b"", final=True))
    except UnicodeDecodeError:
        raise UnreadableInput(file=file, problem="is not UTF-8 text (it ends within a character)") from None
    return "".join(parts)


def read_documents(file: str) -> Iterator[Any]:
    """The documents of a file. Raises UnreadableInput."""
    text = read_text(file)
    if text.lstrip()[:1] == "{":
        try:
            # far faster than YAML, and what kubectl writes most
            found = list(_load_json(text, file))
        except ValueError as error:
            if file.endswith(".json"):
                raise UnreadableInput(file=file, problem=f"is not JSON: {error}") from None
        except RecursionError:
            raise UnreadableInput(file=file, problem="is nested too deeply") from None
        else:
            yield from found
            return
    try:
        yield from load_all(text, strict=True)
    except YamlError as error:
        raise UnreadableInput(file=file, problem=str(error)) from None


class _Refused:
    """Stands in decoded JSON where something was that is refused, until its path is known."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


class _Hooks:
    """What json.loads asks about numbers and objects; `any` once something was refused."""

    def __init__(self) -> None:
        self.any = False

    def refuse(self, problem: str) -> _Refused:
        self.any = True
        return _Refused(problem)

    def whole(self, text: str) -> int | _Refused:
        if len(text) < _DIGITS or (len(text) <= _DIGITS + 1 and -BIGGEST - 1 <= int(text) <= BIGGEST):
            return int(text)
        return self.refuse("is a number of more than 64 bits")

    def constant(self, text: str) -> _Refused:
        return self.refuse(f"is {text}, which JSON has no number for")

    def mapping(self, pairs: list[tuple[str, Any]]) -> Any:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return self.refuse(f"has the key {twice!r} twice")


def _load_json(text: str, file: str) -> Iterator[Any]:
    """The values of a text, of which `jq -c` writes one a line.

    Raises ValueError, RecursionError, UnreadableInput.
    """
    hooks = _Hooks()
    decoder = json.JSONDecoder(
        parse_int=hooks.whole, parse_constant=hooks.constant, object_pairs_hook=hooks.mapping
    )
    place = _after_space(text, 0)
    while place < len(text):
        found, end = decoder.raw_decode(text, place)
        if hooks.any:
            path, problem = next(_refused(found, ()))
            raise UnreadableInput(file=file, problem=f"{path_text(path)} {problem}")
        _refuse_surrogates(found, text, file)
        yield found
        place = _after_space(text, end)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _refused(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, _Refused):
        yield path, value.problem
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _refused(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _refused(item, (*path, index))


def _refuse_surrogates(found: object, text: str, file: str) -> None:
    """JSON can spell half of a character, which no output can repeat."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        problem = (
            f"spells half of a character: \\u{ord(error.object[error.start]):04x} without the other half"
        )
        raise UnreadableInput(file=file, problem=problem) from None
