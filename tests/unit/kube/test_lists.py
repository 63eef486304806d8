# SPDX-License-Identifier: MIT
"""Pages are bounded by their bytes, whatever the size of what is in them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubectl_pacto.kube.client import METADATA_LIST
from kubectl_pacto.kube.lists import FIRST_PAGE, PAGE, PAGE_BYTES, list_all


class Pages:
    """A client over one list of objects of a size."""

    def __init__(self, count: int, size: int) -> None:
        self.items = [{"metadata": {"name": str(number)}, "data": "x" * size} for number in range(count)]
        self.limits: list[int] = []
        self.sizes: list[int] = []
        self.accepts: set[str] = set()
        self.received = 0

    def get(self, path: str, *, accept: str = "") -> dict[str, Any]:
        query = parse_qs(urlsplit(path).query)
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        items = self.items[start : start + limit]
        metadata: dict[str, Any] = {"resourceVersion": "7"}
        if start + limit < len(self.items):
            metadata["continue"] = str(start + limit)
        size = len(json.dumps(items))
        self.limits.append(limit)
        self.sizes.append(size)
        self.accepts.add(accept)
        self.received += size
        return {"metadata": metadata, "items": list(items)}


@pytest.mark.parametrize(("size", "count"), [(10, 3000), (10_000, 700), (1 << 20, 55)])
def test_pages_hold_what_fits(size: int, count: int) -> None:
    client = Pages(count, size)
    found = list_all(client, "/things", lambda raw: raw["metadata"]["name"])  # type: ignore[arg-type]
    assert found.items == [str(number) for number in range(count)]
    assert found.version == "7"
    assert client.limits[0] == FIRST_PAGE
    assert all(1 <= limit <= PAGE for limit in client.limits)
    assert all(
        page <= PAGE_BYTES * 1.1 or limit == 1
        for page, limit in zip(client.sizes[1:], client.limits[1:], strict=True)
    )
    # and no smaller than they need be
    assert len(client.limits) <= 2 + max(sum(client.sizes) / PAGE_BYTES * 2, count / PAGE)


def test_a_list_of_metadata_asks_for_no_more() -> None:
    client = Pages(3, 10)
    list_all(client, "/things", dict, accept=METADATA_LIST)  # type: ignore[arg-type]
    assert client.accepts == {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
