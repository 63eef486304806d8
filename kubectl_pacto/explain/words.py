# SPDX-License-Identifier: MIT
"""Words that tables and messages print beside codes: statuses, states, levels, outcomes, reasons.

words.yaml is their one source: `kubectl pacto explain WORD` reads it, and the tables of docs/tables.md and
docs/observations.md are made from it. A word may have several meanings, one for each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from kubectl_pacto.explain import read_source

SOURCE: Final = "kubectl_pacto/explain/words.yaml"
COLUMNS: Final = "kubectl_pacto/explain/columns.yaml"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of one kind; `details` are what only its kind has, such as a reason's state."""

    word: str
    kind: str
    title: str
    means: str
    do: str
    where: str
    page: str
    details: Mapping[str, str]

    def sections(self) -> tuple[tuple[str, str], ...]:
        """Headings with their text."""
        where = f"{self.where}. More: {self.page}"
        return ("What it means", self.means), ("Where it stands", where), ("What to do", self.do)


@cache
def words() -> tuple[Word, ...]:
    """Every word of every kind, in the order of the source."""
    return tuple(
        Word(
            word,
            kind,
            raw["is"],
            said["means"],
            said["do"],
            raw["where"],
            raw["page"],
            {key: text for key, text in said.items() if key not in ("means", "do")},
        )
        for kind, raw in read_source("words.yaml").items()
        for word, said in raw["words"].items()
    )


@cache
def columns() -> dict[str, dict[str, str]]:
    """What each column of each command's table shows."""
    found: dict[str, dict[str, str]] = read_source("columns.yaml")
    return found


def of_kind(kind: str) -> list[Word]:
    """The words of one kind."""
    return [one for one in words() if one.kind == kind]


def plain(name: str) -> str:
    """A code or word as it is compared: in any case, with or without - and _."""
    return name.lower().replace("-", "").replace("_", "")


def find(name: str) -> list[Word]:
    """What a word means, in each of its kinds; nothing for one that is not known."""
    return [one for one in words() if plain(one.word) == plain(name)]


def names(found: Iterable[Word]) -> list[str]:
    """Each word once, in order."""
    return list(dict.fromkeys(one.word for one in found))
