# SPDX-License-Identifier: MIT
"""Contract bundles as archives, and a registry server of our own that can misbehave."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTRACT = b"pactoVersion: '2.0'\nservice: {name: shop, version: 1.0.0}\n"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "application/vnd.pacto.bundle.layer.v1.tar+gzip"


def digest(data: bytes) -> str:
    """The sha256 digest of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def archive(files: Mapping[str, bytes], *entries: tarfile.TarInfo) -> bytes:
    """A gzip-compressed tar archive of files, and of entries without content."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for entry in entries:
            tar.addfile(entry)
    return gzip.compress(raw.getvalue(), mtime=0)


def manifest(*layers: bytes, media_type: str = MANIFEST) -> bytes:
    """An image manifest of these layers."""
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": digest(b"{}"),
                "size": 2,
            },
            "layers": [{"mediaType": LAYER, "digest": digest(layer), "size": len(layer)} for layer in layers],
        }
    ).encode()


@dataclass
class Answer:
    """What a server answers to one path."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Server:
    """A running server: its host, and every request it saw as (path, authorization)."""

    host: str
    seen: list[tuple[str, str]]

    def authorizations(self) -> set[str]:
        """The distinct authorizations it was sent, none included."""
        return {authorization for _, authorization in self.seen}


Answering = Callable[[str, str], Answer]


@contextmanager
def serving(answer: Answering, answer_head: Answering | None = None) -> Iterator[Server]:
    """A server on this machine that answers by (path, authorization), HEAD like GET unless told."""
    seen: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorization = self.headers.get("Authorization", "")
            seen.append((self.path, authorization))
            found = answer(self.path, authorization)
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in found.headers:
                self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        def do_HEAD(self) -> None:
            authorization = self.headers.get("Authorization", "")
            found = (answer_head or answer)(self.path, authorization)
            seen.append((f"HEAD {self.path}", authorization))
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            if found.status == 200 and "Docker-Content-Digest" not in found.headers:
                self.send_header("Docker-Content-Digest", digest(found.body))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Server(f"127.0.0.1:{server.server_address[1]}", seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def repository(path: str, layer: bytes, tags: Mapping[str, bytes] | None = None) -> dict[str, Answer]:
    """The answers of a registry that holds one repository; every tag is the one manifest by default."""
    one = manifest(layer)
    held = {"1.0.0": one} if tags is None else dict(tags)
    answers = {
        f"/v2/{path}/tags/list": Answer(json.dumps({"name": path, "tags": list(held)}).encode()),
        f"/v2/{path}/blobs/{digest(layer)}": Answer(layer),
    }
    for tag, body in held.items():
        for reference in (tag, digest(body)):
            answers[f"/v2/{path}/manifests/{reference}"] = Answer(body, headers={"Content-Type": MANIFEST})
    return answers
