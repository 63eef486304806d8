# SPDX-License-Identifier: MIT
"""`kubectl pacto explain CODE_OR_WORD`: what is printed means, and what to do about it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence

import click

from kubectl_pacto.cli.options import did_you_mean
from kubectl_pacto.errors import UsageError
from kubectl_pacto.explain import Page, pages
from kubectl_pacto.explain.words import Word, find, names, plain, words

WIDTH = 80
NO_SEVERITY = "none"
EXAMPLES = """
\b
Examples:
  kubectl pacto explain INTERFACE_ABSENT   # a finding
  kubectl pacto explain HeartbeatTooOld    # any word of a table or message
  kubectl pacto explain                    # lists all
"""


@click.command(short_help="What a finding's code or a printed word means.", epilog=EXAMPLES)
@click.argument("word", metavar="[CODE_OR_WORD]", required=False)
@click.option(
    "-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def explain(*, word: str | None, form: str) -> None:
    """Print what a finding's code means, what it rests on and what to do.

    It knows the other words that tables and messages print, too: statuses, states, levels, outcomes,
    reasons. Without any, list all.
    """
    if word is None:
        every: Sequence[Page | Word] = [*sorted(pages().values(), key=lambda one: one.code), *words()]
        click.echo(_as_json(every) if form == "json" else _listing(every), nl=False)
        return
    found: list[Page | Word] = [one for code, one in pages().items() if plain(code) == plain(word)]
    found += find(word)
    if not found:
        raise UsageError(_unknown(word, [*pages(), *names(words())]))
    click.echo(_as_json(found) if form == "json" else "\n".join(map(_text, found)), nl=False)


def _unknown(word: str, known: Iterable[str]) -> str:
    """That nothing is called so, and what may be meant."""
    meant = did_you_mean(plain(word), {plain(one): one for one in known}, cutoff=0.6)
    return f"no code or word is called {word}{meant} (`kubectl pacto explain` lists all)"


def _listing(found: Sequence[Page | Word]) -> str:
    width = max(len(_name(one)) for one in found)
    lines = [
        f"{one.code:<{width}}  {one.severity.value:<8} {one.category}"
        if isinstance(one, Page)
        else f"{one.word:<{width}}  {one.title}"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def _name(one: Page | Word) -> str:
    return one.code if isinstance(one, Page) else one.word


def _text(one: Page | Word) -> str:
    said = f"{one.severity.value}, {one.category}" if isinstance(one, Page) else one.title
    lines = [f"{_name(one)}  ({said})"]
    for title, text in one.sections():
        lines += ["", title, *_wrapped(text)]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _as_json(found: Sequence[Page | Word]) -> str:
    """Findings and words in one shape; a word has no severity, and stands where a finding rests."""
    items = [
        {
            "code": _name(one),
            "category": one.category if isinstance(one, Page) else one.kind,
            "severity": one.severity.value if isinstance(one, Page) else NO_SEVERITY,
            "means": one.means,
            "restsOn": one.rests if isinstance(one, Page) else "",
            "do": one.do,
            "where": "" if isinstance(one, Page) else one.where,
            "page": f"docs/findings/{one.code}.md" if isinstance(one, Page) else one.page,
        }
        for one in found
    ]
    return json.dumps(items, indent=2) + "\n"
