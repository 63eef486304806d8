# SPDX-License-Identifier: MIT
"""Commands that the documentation shows: fenced blocks, how each is tested, what it is said to print.

A comment above a block of sh or console classifies it: `<!-- test: unit -->`, `<!-- test: cluster -->` or
`<!-- not tested: WHY -->`. A text block below one, under `<!-- prints -->`, holds lines that must come in
this order. Pages that cannot carry comments are classified in tests/docs/pages.yaml.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import yaml

from tests.support.sources import ROOT, files, with_sources

FENCE: Final = re.compile(r"^```(\w*)\s*$")
MARK: Final = re.compile(r"^<!-- (test|not tested): (.+?) -->$")
SHELLS: Final = ("sh", "console", "bash", "shell")
PAGES: Final = ROOT / "tests" / "docs" / "pages.yaml"


@dataclass(frozen=True, slots=True)
class Block:
    """One block of commands; `tier` is unit, cluster, none (with `why`), or empty: not classified."""

    page: str
    line: int
    source: str
    tier: str
    why: str = ""
    prints: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page that shows commands to a user or contributor; records of decisions tell of the past."""
    return [name for name in files(".md") if not name.startswith(("docs/decisions/", "changes/"))]


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    default = next((why for pattern, why in defaults().items() if fnmatch(page, pattern)), "")
    return parse(page, (ROOT / page).read_text(encoding="utf-8"), default)


def defaults() -> dict[str, str]:
    """Why the blocks of a page are not tested one by one, by its name or a pattern of names."""
    found: dict[str, str] = yaml.safe_load(PAGES.read_text(encoding="utf-8"))
    return found


def parse(page: str, text: str, default: str = "") -> list[Block]:
    """The same of a page's text."""
    found: list[Block] = []
    mark = ("none", default) if default else ("", "")
    pending, prints, inside = mark, False, ""
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if fence := FENCE.match(line):
            if inside:
                found = _closed(found, Block(page, number, "\n".join(body), *pending), inside, prints)
                pending, prints, inside = mark, False, ""
            else:
                inside, body = fence[1] or "text", []
        elif inside:
            body.append(line)
        elif said := MARK.match(line.strip()):
            pending = (said[2], "") if said[1] == "test" else ("none", said[2])
        elif line.strip() == "<!-- prints -->":
            prints = True
        elif line.strip():
            pending, prints = mark, False
    return found


def _closed(found: list[Block], block: Block, language: str, prints: bool) -> list[Block]:
    if prints and found and language == "text":
        last = found[-1]
        lines = tuple(block.source.splitlines())
        return [*found[:-1], Block(last.page, last.line, last.source, last.tier, last.why, lines)]
    return [*found, block] if language in SHELLS else found


def in_order(wanted: tuple[str, ...], printed: str) -> str:
    """The first wanted line that does not come, after those before it; empty when all come."""
    lines = iter(printed.splitlines())
    for one in wanted:
        if not any(" ".join(one.split()) in " ".join(line.split()) for line in lines):
            return one
    return ""


def shims(folder: Path, kubectl_pacto: str, kubectl: str = "") -> None:
    """Programs that a block calls: the plugin, alone and through kubectl, and kubectl itself if given."""
    plugin = f'exec {kubectl_pacto} "$@"'
    other = f'exec {kubectl} "$@"' if kubectl else 'echo "no cluster here: kubectl $*" >&2; exit 1'
    starts = f'if [ "${{1-}}" = pacto ]; then shift; {plugin}; fi\n{other}'
    for name, text in (("kubectl-pacto", plugin), ("kubectl", starts)):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


def type_in(block: Block, folder: Path, kubeconfig: Path) -> str:
    """What a block prints that is typed in `folder`/work with this checkout's commands; it must work."""
    programs = folder / "bin"
    programs.mkdir()
    shims(programs, f"{sys.executable} -m kubectl_pacto")
    environment = {
        **with_sources(),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["sh", "-eu", "-c", block.source],
        cwd=folder / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout
