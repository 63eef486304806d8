# SPDX-License-Identifier: MIT
"""Semantic versions and the ranges that contracts write, with the meaning contracts give them.

Syntax: comparators `= != > >= < <=`, `^` and `~`, `x` or `*` for a part, `a - b`, comma or space
for and, `||` for or. A bare full version is exact. Versions read leniently: a leading v and missing
parts are fine. A pre-release satisfies only an alternative that itself names a pre-release.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_VERSION: Final = re.compile(
    r"v?(0|[1-9]\d*)(?:\.(0|[1-9]\d*))?(?:\.(0|[1-9]\d*))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_PART = r"(\d+|[xX*])"
_COMPARATOR: Final = re.compile(
    rf"(=|==|!=|>|>=|=>|<|<=|=<|~|~>|\^)?\s*v?{_PART}(?:\.{_PART})?(?:\.{_PART})?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)
_HYPHEN: Final = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*")
_OPERATOR_GAP: Final = re.compile(r"([=!<>~^])\s+")

Key = tuple[int, int, int, tuple[tuple[int, int, str], ...]]
# sorts after every list of pre-release identifiers: a release is newer than its pre-releases
_RELEASE: Final = ((2, 0, ""),)


@dataclass(frozen=True, slots=True)
class Version:
    """A version; `pre` is its pre-release part."""

    major: int
    minor: int
    patch: int
    pre: str = ""

    @property
    def key(self) -> Key:
        """What versions are ordered by."""
        return self.major, self.minor, self.patch, _pre_key(self.pre)


def _pre_key(pre: str) -> tuple[tuple[int, int, str], ...]:
    if not pre:
        return _RELEASE
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))


def parse_version(text: str) -> Version | None:
    """The version in `text`, None if there is none."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    major, minor, patch = (int(part or 0) for part in match.group(1, 2, 3))
    return Version(major, minor, patch, match[4] or "")


Test = Callable[[Key], bool]


@dataclass(frozen=True, slots=True)
class _Comparator:
    test: Test
    names_pre: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A parsed range: alternatives of comparators that must all hold."""

    text: str
    alternatives: tuple[tuple[_Comparator, ...], ...]

    def contains(self, version: Version) -> bool:
        """Whether the version lies inside."""
        return any(
            all((not version.pre or item.names_pre) and item.test(version.key) for item in alternative)
            for alternative in self.alternatives
        )


@lru_cache(maxsize=4096)
def parse_range(text: str) -> Range | None:
    """The range in `text`, None if it is empty or no range."""
    alternatives = []
    for part in text.split("||"):
        found = _alternative(part)
        if found is None:
            return None
        alternatives.append(found)
    return Range(text, tuple(alternatives))


def in_range(version: str, compatibility: str) -> bool | None:
    """Whether a version lies inside a range; None when either does not parse."""
    parsed, bounds = parse_version(version), parse_range(compatibility)
    if parsed is None or bounds is None:
        return None
    return bounds.contains(parsed)


def _alternative(text: str) -> tuple[_Comparator, ...] | None:
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        text = f">={hyphen[1]} <={hyphen[2]}"
    words = [word for word in re.split(r"[,\s]+", _OPERATOR_GAP.sub(r"\1", text.strip())) if word]
    found: list[_Comparator] = []
    for word in words:
        match = _COMPARATOR.fullmatch(word)
        if match is None:
            return None
        found.append(_comparator(match))
    return tuple(found) or None


def _comparator(match: re.Match[str]) -> _Comparator:
    parts: list[int] = []
    for part in match.group(2, 3, 4):
        if part is None or not part.isdigit():
            break
        parts.append(int(part))
    pre = (match[5] or "") if len(parts) == 3 else ""
    return _Comparator(_test(match[1] or "", parts, pre), bool(pre))


def _bump(parts: list[int], at: int) -> Key:
    """The first version after every one that shares the parts up to index `at`."""
    full = [*parts, 0, 0, 0][:3]
    full[at] += 1
    full[at + 1 :] = [0] * (2 - at)
    return full[0], full[1], full[2], ((0, -1, ""),)  # before its own pre-releases


def _test(operator: str, parts: list[int], pre: str) -> Test:
    full = [*parts, 0, 0, 0][:3]
    low: Key = (full[0], full[1], full[2], _pre_key(pre))
    if not parts:  # "*": every version, except for what excludes every version
        return lambda _: operator not in ("!=", ">", "<")
    after = _bump(parts, len(parts) - 1)  # beyond what a partial version stands for
    is_partial = len(parts) < 3
    match operator:
        case "" | "=" | "==":
            return (lambda key: low <= key < after) if is_partial else (lambda key: key == low)
        case "!=":
            return (lambda key: not low <= key < after) if is_partial else (lambda key: key != low)
        case ">":
            return (lambda key: key >= after) if is_partial else (lambda key: key > low)
        case ">=" | "=>":
            return lambda key: key >= low
        case "<":
            return lambda key: key < low
        case "<=" | "=<":
            return (lambda key: key < after) if is_partial else (lambda key: key <= low)
        case "~" | "~>":
            return lambda key: low <= key < _bump(parts, min(len(parts), 2) - 1)
        case _:
            return lambda key: low <= key < _bump(parts, _caret_index(parts))


def _caret_index(parts: list[int]) -> int:
    """The part a caret lets no newer version change: the first that is not zero."""
    return next((index for index, part in enumerate(parts) if part), len(parts) - 1)
