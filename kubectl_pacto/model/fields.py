# SPDX-License-Identifier: MIT
"""Typed reads from decoded JSON, whose errors name the field and what belongs there.

Used by every decoder of the model, the agent's among them: standard library only. Unknown fields
are never looked at. A missing field and `null` read the same, as the API server treats them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.model.instant import parse_instant

E = TypeVar("E", bound=StrEnum)

_NAMES: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """What a decoded JSON value is, in words for a person."""
    return _NAMES.get(type(value), type(value).__name__)


class Fields:
    """One mapping of an object, and the path that led to it (empty at the top)."""

    __slots__ = ("_raw", "where")

    def __init__(self, raw: object, where: str = "") -> None:
        if not isinstance(raw, dict):
            raise MalformedObject(where or "(top)", f"must be a mapping, not {kind_of(raw)}")
        self._raw: Mapping[object, object] = raw
        self.where = where

    @property
    def whole(self) -> object:
        """The mapping itself, undecoded."""
        return self._raw

    def path(self, name: str) -> str:
        """The path of a field of this mapping."""
        return f"{self.where}.{name}" if self.where else name

    def fail(self, name: str, problem: str) -> MalformedObject:
        """The error to raise about field `name`."""
        return MalformedObject(self.path(name), problem)

    def __contains__(self, name: str) -> bool:
        return self._raw.get(name) is not None

    def names(self) -> list[str]:
        """The names of the fields that are there."""
        return [str(name) for name, value in self._raw.items() if value is not None]

    def raw(self, name: str) -> object:
        """The undecoded value, None if it is missing."""
        return self._raw.get(name)

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        value = self._raw.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.fail(name, f"must be a string, not {kind_of(value)} (quote it: {value!s:.40})")
        return value

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._raw.get(name) is not None

    def required_text(self, name: str) -> str:
        """A string that must be there and not be empty."""
        value = self.text(name)
        if not value:
            raise self.fail(name, "is required: give a non-empty string")
        return value

    def count(self, name: str, default: int = 0) -> int:
        """A whole number of zero or more."""
        value = self.optional_int(name)
        if value is None:
            return default
        if value < 0:
            raise self.fail(name, f"must not be negative (it is {value})")
        return value

    def optional_int(self, name: str) -> int | None:
        """A whole number, None if it is missing."""
        value = self._raw.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail(name, f"must be a whole number, not {kind_of(value)}")
        return value

    def port(self, name: str) -> int:
        """A port number, 1 to 65535."""
        value = self.optional_int(name)
        if value is None or not 0 < value < 65536:
            raise self.fail(name, f"must be a port number from 1 to 65535 (it is {value})")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.optional_flag(name)
        return default if value is None else value

    def optional_flag(self, name: str) -> bool | None:
        """True or false, None if it is missing."""
        value = self._raw.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fail(name, f"must be true or false, not {kind_of(value)}")
        return value

    def instant(self, name: str) -> float | None:
        """POSIX seconds of an RFC 3339 time, None if it is missing."""
        value = self._raw.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.fail(name, f"must be an RFC 3339 time such as 2026-10-18T09:12:44Z, not {value!s:.40}")
        try:
            return parse_instant(value)
        except ValueError as error:
            raise self.fail(name, str(error)) from None

    def choice(self, name: str, members: type[E], default: E) -> E:
        """A member of a closed set of strings."""
        value = self.text(name, default.value)
        try:
            return members(value)
        except ValueError:
            allowed = ", ".join(repr(member.value) for member in members)
            raise self.fail(name, f"must be one of {allowed} (it is {value!r})") from None

    def child(self, name: str) -> Fields:
        """A mapping; an empty one if it is missing."""
        value = self._raw.get(name)
        return Fields({} if value is None else value, self.path(name))

    def optional_child(self, name: str) -> Fields | None:
        """A mapping, None if it is missing."""
        return self.child(name) if name in self else None

    def items(self, name: str) -> list[object]:
        """A list; an empty one if it is missing."""
        value = self._raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fail(name, f"must be a list, not {kind_of(value)}")
        return value

    def children(self, name: str) -> Iterator[Fields]:
        """The mappings of a list."""
        path = self.path(name)
        for index, item in enumerate(self.items(name)):
            yield Fields(item, f"{path}[{index}]")

    def texts(self, name: str) -> tuple[str, ...]:
        """The strings of a list."""
        found = []
        for index, item in enumerate(self.items(name)):
            if not isinstance(item, str):
                raise self.fail(f"{name}[{index}]", f"must be a string, not {kind_of(item)}")
            found.append(item)
        return tuple(found)

    def text_map(self, name: str) -> dict[str, str]:
        """A mapping of strings to strings, such as labels."""
        child = self.child(name)
        found: dict[str, str] = {}
        for key, value in child._raw.items():
            # YAML, unlike JSON, has keys that are no strings
            if not isinstance(key, str) or not isinstance(value, str):
                raise child.fail(str(key), f"must be a string, not {kind_of(value)}: quote it")
            found[key] = value
        return found
