# SPDX-License-Identifier: MIT
"""Lists in pages: each page is decoded and dropped before the next is asked for.

A page is bounded by its bytes rather than by its objects, which may be 700 bytes or a megabyte each: the
size of what came tells how many to ask for next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from kubectl_pacto.kube.client import JSON, Client
from kubectl_pacto.kube.errors import ApiBusy, ApiGone

T = TypeVar("T")
PAGE: Final = 500
FIRST_PAGE: Final = 50
PAGE_BYTES: Final = 2 << 20
RESTARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A whole list as of one resource version."""

    items: list[T]
    version: str


def with_query(path: str, **query: str | int) -> str:
    """A path with these added to its query string; empty values are left out."""
    chosen = {name: value for name, value in query.items() if value != ""}
    return f"{path}{'&' if '?' in path else '?'}{urlencode(chosen)}" if chosen else path


def list_all(
    client: Client,
    path: str,
    decode: Callable[[dict[str, Any]], T],
    *,
    limit: int = PAGE,
    accept: str = JSON,
) -> Listed[T]:
    """Every item of a list, all of one version; at most `limit` in a page. Raises ApiError.

    A continue token that has expired starts the list over; after a few such starts the rest is asked
    for in one piece, so that a list always comes to an end.
    """
    for attempt in range(RESTARTS + 1):
        reading = _Reading(client, path, limit if attempt < RESTARTS else 0, accept)
        items: list[T] = []
        try:
            while not reading.is_done:
                raws = reading.page()
                raws.reverse()
                while raws:  # each object's JSON goes once it is decoded
                    items.append(decode(raws.pop()))
        except ApiGone:
            if attempt == RESTARTS:
                raise
            continue
        if not reading.version:
            raise ApiBusy(method="GET", path=path, status=200, problem="a list without a resource version")
        return Listed(items, reading.version)
    raise AssertionError("the last attempt returns or raises")


class _Reading:
    """One pass over the pages of a list; `longest` 0 asks for everything at once."""

    def __init__(self, client: Client, path: str, longest: int, accept: str) -> None:
        self._client, self._path, self._accept = client, path, accept
        self._longest = longest
        self._limit = min(longest, FIRST_PAGE)
        self._token = ""
        self.version = ""
        self.is_done = False

    def page(self) -> list[dict[str, Any]]:
        """The objects of the next page."""
        before = self._client.received
        query: dict[str, str | int] = {"limit": self._limit or "", "continue": self._token}
        page = self._client.get(with_query(self._path, **query), accept=self._accept)
        metadata: Mapping[str, Any] = page.get("metadata") or {}
        self._token = metadata.get("continue") or ""
        self.version = str(metadata.get("resourceVersion") or "")
        self.is_done = not self._token
        items: list[dict[str, Any]] = page.get("items") or []
        size = self._client.received - before
        if items and self._longest:
            self._limit = max(1, min(self._longest, PAGE_BYTES * len(items) // max(size, 1)))
        return items
