# SPDX-License-Identifier: MIT
"""Lists in pages: each page is decoded and dropped before the next is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiBusy, ApiGone

T = TypeVar("T")
PAGE: Final = 500
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
    client: Client, path: str, decode: Callable[[dict[str, Any]], T], *, limit: int = PAGE
) -> Listed[T]:
    """Every item of a list, all of one version. Raises ApiError.

    A continue token that has expired starts the list over; after a few such starts the rest is asked
    for in one piece, so that a list always comes to an end.
    """
    for attempt in range(RESTARTS + 1):
        items: list[T] = []
        version = ""
        try:
            for page in _pages(client, path, limit if attempt < RESTARTS else 0):
                items.extend(decode(raw) for raw in page.get("items") or ())
                version = _version(page)
        except ApiGone:
            if attempt == RESTARTS:
                raise
            continue
        if not version:
            raise ApiBusy(method="GET", path=path, status=200, problem="a list without a resource version")
        return Listed(items, version)
    raise AssertionError("the last attempt returns or raises")


def _pages(client: Client, path: str, limit: int) -> Iterator[Mapping[str, Any]]:
    token = ""
    while True:
        query: dict[str, str | int] = {"limit": limit or "", "continue": token}
        page = client.get(with_query(path, **query))
        token = (page.get("metadata") or {}).get("continue") or ""
        yield page
        if not token:
            return


def _version(page: Mapping[str, Any]) -> str:
    return str((page.get("metadata") or {}).get("resourceVersion") or "")
