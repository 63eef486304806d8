# SPDX-License-Identifier: MIT
"""An API server of a whole fleet for benchmarks: collections of encoded objects, pages, watches, writes.

One loop, raw HTTP/1.1. What it serves was encoded before, so that its own cost hides nothing of the
reader's. It refuses a list without a limit, and counts requests and bytes by what they were for.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from kubectl_pacto.model.instant import format_instant
from tests.support.merge_patch import merged
from tests.support.scale_objects import NOW, Raw, encoded

HISTORY: Final = 100_000
HEADER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
COLLECTION = re.compile(r"^(?P<api>/apis?/[^?]*?)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[a-z]+)$")
OBJECT = re.compile(
    r"^(?P<api>/apis?/[^?]*?)/namespaces/(?P<namespace>[^/]+)/(?P<resource>[a-z]+)/(?P<name>[^/]+)(?:/status)?$"
)
FORGOTTEN: Final = frozenset({"events"})
Key = tuple[str, str]


class Collection:
    """One resource's objects, with the events of late for watches that begin in the past."""

    def __init__(self) -> None:
        self.items: dict[Key, bytes] = {}
        self.history: deque[tuple[int, bytes]] = deque(maxlen=HISTORY)
        self.oldest = 0
        self.watchers: set[Conversation] = set()


class ScaleApi:
    """What the server knows; change it from its own loop alone."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.version = 1000
        self.collections: dict[str, Collection] = {}
        self.requests: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.without_limit: list[str] = []
        self.patched: Counter[Key] = Counter()
        self.verdicts: dict[Key, str] = {}
        self.findings: dict[Key, str] = {}
        self.controls: dict[str, Callable[[dict[str, str]], Any]] = {"stats": lambda _: self.stats()}
        self._pages: dict[str, tuple[list[bytes], int]] = {}

    def collection(self, resource: str) -> Collection:
        """The objects of a resource."""
        return self.collections.setdefault(resource, Collection())

    def load(self, resource: str, raw: Raw) -> None:
        """An object that is there from the start."""
        metadata = raw["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        self.collection(resource).items[key] = encoded(raw)

    def put(self, resource: str, raw: Raw) -> None:
        """Create or change an object, and tell the watches."""
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        key, found = (
            (raw["metadata"].get("namespace", ""), raw["metadata"]["name"]),
            self.collection(resource),
        )
        kind = b"MODIFIED" if key in found.items else b"ADDED"
        found.items[key] = encoded(raw)
        self._tell(found, kind, found.items[key])

    def delete(self, resource: str, key: Key) -> None:
        """Delete an object."""
        found = self.collection(resource)
        raw = json.loads(found.items.pop(key))
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self._tell(found, b"DELETED", encoded(raw))

    def bookmark(self) -> None:
        """A bookmark for every watch."""
        line = encoded({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})
        for found in self.collections.values():
            for watcher in found.watchers:
                watcher.chunk(line + b"\n")

    def compact(self) -> None:
        """Forget all history: a watch from an older version is answered with 410."""
        for found in self.collections.values():
            found.history.clear()
            found.oldest = self.version

    def hang_up(self) -> None:
        """End every watch in the middle of nothing."""
        for found in self.collections.values():
            for watcher in found.watchers:
                watcher.transport.abort()
            found.watchers.clear()

    def _tell(self, found: Collection, kind: bytes, raw: bytes) -> None:
        line = b'{"type":"%b","object":%b}\n' % (kind, raw)
        found.history.append((self.version, line))
        for watcher in found.watchers:
            watcher.chunk(self.timed(line))

    def timed(self, content: bytes) -> bytes:
        """Content with its moving times filled in."""
        return content.replace(NOW, format_instant(self.clock(), digits=3).encode())

    def stats(self) -> Raw:
        """What was asked so far."""
        return {
            "requests": dict(self.requests),
            "bytes": dict(self.sent),
            "withoutLimit": self.without_limit,
            "pacto": len(self.patched),
            "patches": sum(self.patched.values()),
            "least": min(self.patched.values(), default=0),
            "verdicts": dict(Counter(self.verdicts.values())),
            "findings": sorted(found for found in self.findings.values() if found)[:3],
        }

    def page(self, resource: str, query: dict[str, str], *, bare: bool = False) -> Iterator[bytes]:
        """One page of a list, in pieces; `bare` for the objects' metadata alone."""
        limit, token = int(query.get("limit", 0)), query.get("continue", "")
        items, version = self._pages.pop(token, ([], 0)) if token else (self._all(resource), self.version)
        if not limit:
            self.without_limit.append(resource)
            limit = len(items)
        head: Raw = {"resourceVersion": str(version)}
        if items[limit:]:
            head["continue"] = f"{resource}-{self.version}-{len(items)}"
            self._pages[head["continue"]] = items[limit:], version
        yield b'{"metadata":%b,"items":[' % encoded(head)
        yield b",".join(bared(item) for item in items[:limit]) if bare else b",".join(items[:limit])
        yield b"]}"

    def _all(self, resource: str) -> list[bytes]:
        return list(self.collection(resource).items.values())

    def patch(self, resource: str, key: Key, body: Raw) -> tuple[int, bytes]:
        """A merge patch of a status."""
        found = self.collection(resource)
        if key not in found.items:
            return 404, b'{"kind":"Status","message":"not found"}'
        raw = json.loads(found.items[key])
        told = (body.get("metadata") or {}).get("resourceVersion", "")
        if told and told != raw["metadata"]["resourceVersion"]:
            return 409, b'{"kind":"Status","message":"modified"}'
        raw["status"] = merged(raw.get("status"), body.get("status"))
        if resource == "pactos":
            self.patched[key] += 1
            self.verdicts[key] = raw["status"].get("contractStatus", "")
            told = raw["status"].get("findings") or [{}]
            self.findings[key] = told[0].get("message", "")
        self.put(resource, raw)
        return 200, found.items[key]


def bared(item: bytes) -> bytes:
    """An object's metadata alone."""
    return encoded({"metadata": json.loads(item)["metadata"]})


class Conversation(asyncio.Protocol):
    """One connection."""

    def __init__(self, api: ScaleApi) -> None:
        self.api = api
        self.rest = b""
        self.transport: Any = None
        self.followed: Collection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody called."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class's shape
        """Gone, and its watch with it."""
        if self.followed is not None:
            self.followed.watchers.discard(self)

    def data_received(self, data: bytes) -> None:
        """A request, or a part of one."""
        self.rest += data
        while (end := self.rest.find(b"\r\n\r\n")) >= 0:
            head = self.rest[:end]
            marker = head.lower().find(b"content-length:")
            length = int(head[marker + 15 :].split(b"\r\n")[0]) if marker >= 0 else 0
            if len(self.rest) < end + 4 + length:
                return
            body, self.rest = self.rest[end + 4 : end + 4 + length], self.rest[end + 4 + length :]
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            self.serve(method, target, body, bare=b"PartialObjectMetadataList" in head)

    def serve(self, method: str, target: str, body: bytes, *, bare: bool) -> None:
        """Answer one request."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path.startswith("/_/"):
            self.send("control", 200, encoded(self.api.controls[url.path[3:]](query) or {}))
            return
        if match := OBJECT.match(url.path):
            key, resource = (match["namespace"], match["name"]), match["resource"]
            self.api.requests[f"{method} one {resource}"] += 1
            self.one(method, resource, key, body)
        elif match := COLLECTION.match(url.path):
            resource = match["resource"]
            what = "WATCH" if "watch" in query else "LIST" if method == "GET" else method
            self.api.requests[f"{what} {resource}"] += 1
            self.many(f"{what} bare" if bare else what, resource, query, body)
        else:
            self.send("unknown", 404, b'{"kind":"Status","message":"not served"}')

    def one(self, method: str, resource: str, key: Key, body: bytes) -> None:
        """A request for an object."""
        if method == "PATCH":
            status, content = self.api.patch(resource, key, json.loads(body))
            self.send(resource, status, content)
            return
        found = self.api.collection(resource).items.get(key)
        if found is None:
            self.send(resource, 404, b'{"kind":"Status","message":"not found"}')
        else:
            self.send(resource, 200, self.api.timed(found))

    def many(self, what: str, resource: str, query: dict[str, str], body: bytes) -> None:
        """A request for a collection."""
        if what == "WATCH":
            self.watch(self.api.collection(resource), int(query["resourceVersion"]))
        elif what.startswith("LIST"):
            pieces = self.api.page(resource, query, bare=what == "LIST bare")
            self.send(resource, 200, self.api.timed(b"".join(pieces)))
        elif resource in FORGOTTEN:
            self.send(resource, 201, b"{}")
        else:
            raw = json.loads(body)
            self.api.put(resource, raw)
            self.send(resource, 201, encoded(raw))

    def send(self, what: str, status: int, content: bytes) -> None:
        """An answer."""
        self.api.sent[what] += len(content)
        first = HEADER if status == 200 else b"HTTP/1.1 %d Said\r\n" % status
        self.transport.write(b"%bContent-Length: %d\r\n\r\n" % (first, len(content)))
        self.transport.write(content)

    def watch(self, found: Collection, version: int) -> None:
        """Events after a version, and those to come."""
        if version < found.oldest:
            self.send("watch", 410, b'{"kind":"Status","code":410,"message":"too old"}')
            return
        self.transport.write(HEADER + b"Transfer-Encoding: chunked\r\n\r\n")
        for number, line in found.history:
            if number > version:
                self.chunk(self.api.timed(line))
        self.followed = found
        found.watchers.add(self)

    def chunk(self, line: bytes) -> None:
        """A piece of a watch."""
        self.api.sent["watch"] += len(line)
        self.transport.write(b"%x\r\n%b\r\n" % (len(line), line))


async def serving(api: ScaleApi) -> tuple[asyncio.Server, int]:
    """A server on a port of its own."""
    server = await asyncio.get_running_loop().create_server(lambda: Conversation(api), "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]
