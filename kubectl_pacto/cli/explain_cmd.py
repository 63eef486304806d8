# SPDX-License-Identifier: MIT
"""`kubectl pacto explain CODE`: what a finding means and what to do about it."""

from __future__ import annotations

import json
import textwrap

import click

from kubectl_pacto.cli.options import unknown_code
from kubectl_pacto.errors import UsageError
from kubectl_pacto.explain import Page, pages

WIDTH = 80


@click.command(short_help="Explain a finding by its code.")
@click.argument("code", required=False)
@click.option(
    "-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def explain(*, code: str | None, form: str) -> None:
    """Print what the finding CODE means, what it rests on and what to do; without CODE, list all."""
    found = pages()
    if code is None:
        chosen = list(found.values())
        click.echo(_as_json(chosen) if form == "json" else _listing(chosen), nl=False)
        return
    page = found.get(code.upper().replace("-", "_"))
    if page is None:
        raise UsageError(unknown_code(code, found))
    click.echo(_as_json([page]) if form == "json" else _text(page), nl=False)


def _listing(found: list[Page]) -> str:
    width = max(len(page.code) for page in found)
    lines = [f"{page.code:<{width}}  {page.severity.value:<8} {page.category}" for page in found]
    return "\n".join(sorted(lines)) + "\n"


def _text(page: Page) -> str:
    lines = [f"{page.code}  ({page.severity.value}, {page.category})"]
    for title, text in page.sections():
        lines += ["", title, *textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines) + "\n"


def _as_json(found: list[Page]) -> str:
    items = [
        {
            "code": page.code,
            "category": page.category,
            "severity": page.severity.value,
            "means": page.means,
            "restsOn": page.rests,
            "do": page.do,
        }
        for page in found
    ]
    return json.dumps(items, indent=2) + "\n"
