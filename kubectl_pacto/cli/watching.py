# SPDX-License-Identifier: MIT
"""How a command goes on showing changes: a terminal is redrawn, elsewhere lines come when something changed.

The API server's watch says when to look again; what no watch covers (ages, heartbeats) is looked at
every few seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kubectl_pacto.cli.terminal import is_terminal, write

if TYPE_CHECKING:
    from kubectl_pacto.kube.connect import Session

REFRESH_SECONDS: Final = 5.0
# several objects that change together are one change
SETTLE_SECONDS: Final = 0.5
HOME_AND_CLEAR: Final = "\x1b[H\x1b[J"
# what changes without anything having changed
_VOLATILE: Final = frozenset({"generatedAt", "checkedSecondsAgo", "heartbeatAgeSeconds", "lastReconciledAt"})

Raw = Mapping[str, Any]


def follow(
    session: Session,
    path: str,
    once: Callable[[], tuple[Raw, str]],
    changes: Callable[[Raw, Raw], str] | None,
) -> None:
    """Show what `once` gives (a document and its text) again and again until interrupted.

    `path` is the collection that is watched. `changes` gives the text to append off a terminal, from
    the document before and the one now; without it the whole text is.
    """
    before: Raw | None = None
    while True:
        version = _version(session, path)
        data, text = once()
        if is_terminal():
            import shutil

            size = shutil.get_terminal_size()
            write(f"{HOME_AND_CLEAR}{fit(text, size.columns, size.lines)}")
        elif before is None or steady(data) != steady(before):
            write(text if before is None or changes is None else changes(before, data))
        before = data
        _wait(session, path, version)


def _version(session: Session, path: str) -> str:
    """The collection's version before it is read: what changes after it ends the next wait."""
    from kubectl_pacto.kube.lists import with_query

    page = session.client.get(with_query(path, limit=1))
    return str((page.get("metadata") or {}).get("resourceVersion") or "")


def _wait(session: Session, path: str, version: str) -> None:
    from kubectl_pacto.kube.lists import with_query

    seconds = int(REFRESH_SECONDS)
    watch = with_query(path, watch="true", resourceVersion=version, timeoutSeconds=seconds)
    came = session.await_event(watch, REFRESH_SECONDS + 1)
    # without a watch, as often as without an event
    time.sleep(REFRESH_SECONDS if came is None else SETTLE_SECONDS)


def fit(text: str, columns: int, lines: int) -> str:
    """As many lines of a text as a terminal shows, the last one free; says how many it left out."""
    import re

    colour = re.compile("\x1b\\[[0-9]+m")
    whole = text.splitlines()
    room, shown = lines - 1, 0
    for line in whole:
        room -= max(1, -(-len(colour.sub("", line)) // max(1, columns)))
        if room < 0:
            break
        shown += 1
    if shown == len(whole):
        return text
    kept = whole[: max(0, shown - 1)]
    return "".join(f"{line}\n" for line in kept) + f"({len(whole) - len(kept)} more lines)\n"


def steady(data: object) -> object:
    """A document without what the clock alone changes."""
    if isinstance(data, Mapping):
        return {key: steady(value) for key, value in data.items() if key not in _VOLATILE}
    return [steady(item) for item in data] if isinstance(data, list | tuple) else data
