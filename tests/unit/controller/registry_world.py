# SPDX-License-Identifier: MIT
"""An API in memory that keeps revisions and Secrets, and a registry whose content a test changes."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubectl_pacto.collect.live_kinds import Known
from kubectl_pacto.controller.revision_table import RevisionTable
from kubectl_pacto.kube.client import METADATA_ONLY
from kubectl_pacto.kube.errors import ApiConflict, ApiForbidden, ApiNotFound
from kubectl_pacto.model.pacto import Pacto
from tests.support.bundles import Answer, Server, archive, digest, manifest, repository, serving

Raw = dict[str, Any]


class RevisionApi:
    """A client that is the API itself; what it keeps is in `table`, as a watch would bring it."""

    def __init__(self) -> None:
        self.table = RevisionTable()
        self.revisions: dict[str, Raw] = {}
        self.secrets: dict[str, Raw] = {}
        self.events: list[Raw] = []
        self.requests: list[tuple[str, str, str]] = []  # method, path, accept
        self.refuse_patches = False

    def put(self, raw: Raw) -> None:
        """Keep a revision."""
        name = raw["metadata"]["name"]
        self.revisions[name] = raw
        self.table.put((raw["metadata"]["namespace"], name), self.table.decode(raw))

    def lose(self, name: str) -> None:
        """Somebody deletes a revision."""
        raw = self.revisions.pop(name)
        self.table.drop((raw["metadata"]["namespace"], name))

    def get(self, path: str, *, accept: str = "") -> Raw:
        self.requests.append(("GET", path, accept))
        if path not in self.secrets:
            raise ApiNotFound(method="GET", path=path, problem="not there")
        found = self.secrets[path]
        return {"metadata": found["metadata"]} if accept == METADATA_ONLY else found

    def post(self, path: str, body: Raw) -> Raw:
        self.requests.append(("POST", path, ""))
        if path.endswith("/events"):
            self.events.append(body)
            return body
        name = body["metadata"]["name"]
        if name in self.revisions:
            raise ApiConflict(method="POST", path=path, problem="exists")
        created = f"2026-01-01T00:00:{len(self.revisions):02}Z"
        self.put({**body, "metadata": {**body["metadata"], "uid": f"r-{name}", "creationTimestamp": created}})
        return body

    def patch(self, path: str, body: Raw) -> Raw:
        self.requests.append(("PATCH", path, ""))
        if self.refuse_patches:
            raise ApiForbidden(method="PATCH", path=path, problem="no")
        name = path.split("/")[-2]
        self.put({**self.revisions[name], **body})
        return self.revisions[name]

    def delete(self, path: str, body: Raw) -> Raw:
        name = path.rpartition("/")[2]
        assert body["preconditions"]["uid"] == self.revisions[name]["metadata"]["uid"]
        self.lose(name)
        return {}

    def secret(self, name: str, version: str, token: str) -> None:
        """Write a pull secret with a token."""
        self.secrets[f"/api/v1/namespaces/ns/secrets/{name}"] = {
            "metadata": {"name": name, "namespace": "ns", "resourceVersion": version},
            "data": {"token": base64.b64encode(token.encode()).decode()},
        }


def revision_like(name: str, *, created: str = "", owner: str = "u1", oci: str = "", tag: str = "") -> Raw:
    """A revision as the API has it."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"r-{name}",
            "creationTimestamp": created,
            "ownerReferences": [{"uid": owner, "controller": True}],
        },
        "spec": {"pactoRef": "shop", "version": "1.0.0", "source": {"oci": oci, "digest": tag}},
        "status": {"resolved": True},
    }


def contract(version: str) -> bytes:
    """A contract of the service shop."""
    return f"pactoVersion: '2.0'\nservice: {{name: shop, version: {version}}}\n".encode()


class Repository:
    """The repository team/shop; `hold` changes a tag, `down` is how it answers instead."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.held: dict[str, bytes] = {}
        self.down: Answer | None = None
        self.token = ""
        self.gate = threading.Event()
        self.gate.set()
        self.server: Server

    def hold(self, tag: str, text: bytes, **files: bytes) -> str:
        """A tag means a bundle from now on; its digest."""
        layer = archive({"pacto.yaml": text, **files})
        self.held[tag] = manifest(layer)
        self.answers.update(repository("team/shop", layer, self.held))
        return digest(manifest(layer))

    def drop(self, tag: str) -> None:
        """A tag is no more."""
        del self.held[tag], self.answers[f"/v2/team/shop/manifests/{tag}"]
        listed = repository("team/shop", b"", self.held)["/v2/team/shop/tags/list"]
        self.answers["/v2/team/shop/tags/list"] = listed

    def answer(self, path: str, authorization: str) -> Answer:
        """What the registry says."""
        self.gate.wait(10)
        if self.down is not None:
            return self.down
        if self.token and authorization != f"Bearer {self.token}":
            return Answer(status=401)
        return self.answers.get(path, Answer(status=404))

    @property
    def ref(self) -> str:
        """Where it is, without a tag."""
        return f"oci://{self.server.host}/team/shop"

    def seen(self) -> list[str]:
        """The requests since the last call."""
        found = [path for path, _ in self.server.seen]
        self.server.seen.clear()
        return found


@contextmanager
def registry() -> Iterator[Repository]:
    """A running registry with one empty repository."""
    made = Repository()

    def answer(path: str, authorization: str) -> Answer:
        return made.answer(path, authorization)  # the one that a test may have put there

    with serving(answer) as server:
        made.server = server
        try:
            yield made
        finally:
            made.gate.set()


def known(oci: str, *, name: str = "shop", revision: str = "", **more: Any) -> Known:
    """A Pacto with its identity."""
    return Known(Pacto("ns", name, oci=oci, **more), "u1", "5", revision)
