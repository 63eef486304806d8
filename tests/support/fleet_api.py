# SPDX-License-Identifier: MIT
"""A fake API that also lists, applies and deletes, on a clock that stands still."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubectl_pacto.controller.manifests.agent_objects import desired
from kubectl_pacto.controller.manifests.agent_values import NodeAgentValues
from kubectl_pacto.controller.options import settings
from tests.support import fake_api
from tests.support.fake_api import FakeApi, serve

NOW = "2026-10-18T09:12:44Z"
DATE = "Sun, 18 Oct 2026 09:12:44 GMT"
Raw = dict[str, Any]
READY: dict[str, Raw] = {
    "CustomResourceDefinition": {"conditions": [{"type": "Established", "status": "True"}]},
    "Deployment": {"readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1},
}


def path_of(raw: Raw, plural: str = "") -> str:
    """Where an object is served."""
    version, metadata = raw["apiVersion"], raw["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = plural or {"EndpointSlice": "endpointslices"}.get(raw["kind"], raw["kind"].lower() + "s")
    plural = plural.replace("policys", "policies").replace("ingresss", "ingresses").replace("sss", "sses")
    inside = f"/namespaces/{metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{base}{inside}/{plural}/{metadata['name']}"


class FleetApi(FakeApi):
    """Collections exist where they hold something or are in `served`; `forbidden` ones answer 403."""

    def __init__(self) -> None:
        super().__init__()
        self.served: set[str] = set()
        self.forbidden: set[str] = set()
        self.page = 0  # at most this many items per page, whatever is asked for
        self.writes: list[tuple[str, str, Raw | None]] = []
        self.denied: set[str] = set()  # resources that an access review says no to
        self.no_watch = False
        self.ready = True  # whether what is applied is ready at once
        self.operates = True  # whether an operator makes its agents of it

    def add(self, *objects: Raw) -> None:
        """Store objects where they belong."""
        for raw in objects:
            self.put(path_of(raw), raw)

    def answer(self, method: str, path: str, accept: str, body: Raw | None) -> tuple[int, Any]:
        """Lists besides what the plain fake answers."""
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if any(word in parts.path.split("/") for word in self.forbidden):
            return 403, fake_api._status(f"{parts.path} is forbidden: User cannot {method.lower()} it")
        if parts.path.endswith("/selfsubjectaccessreviews") and body is not None:
            resource = body["spec"]["resourceAttributes"]["resource"]
            return 201, {"status": {"allowed": resource not in self.denied}}
        if method in ("PATCH", "DELETE", "POST"):
            self.writes.append((method, path, body))
        if method == "PATCH" and body is not None:
            return self._apply(parts.path, body, dry="dryRun" in query)
        if method == "DELETE" and "dryRun" not in query:
            gone = self.objects.pop(parts.path, None)
            if gone and parts.path.startswith("/api/v1/namespaces/") and parts.path.count("/") == 4:
                inside = f"{parts.path.replace('/api/v1', '', 1)}/"
                self.objects = {where: raw for where, raw in self.objects.items() if inside not in where}
            return (200, gone) if gone else (404, fake_api._status(f"{parts.path} not found"))
        if query.get("watch") == "true":
            return self._watch(query)
        if method == "GET" and parts.path not in self.objects and self._is_collection(parts.path):
            return 200, self._list(parts.path, query)
        return super().answer(method, parts.path, accept, body)

    def _watch(self, query: dict[str, str]) -> tuple[int, Any]:
        """One event as soon as anything is newer, or none in time: as much as a reader of one event sees."""
        if self.no_watch:
            return 403, fake_api._status("pactos is forbidden: User cannot watch it")
        end = time.monotonic() + float(query["timeoutSeconds"])
        while time.monotonic() < end:
            if self.version > int(query["resourceVersion"]):
                return 200, {"type": "MODIFIED", "object": {}}
            time.sleep(0.02)
        return 200, None

    def _apply(self, path: str, body: Raw, *, dry: bool) -> tuple[int, Any]:
        before = self.objects.get(path)
        wanted = {**body, "metadata": {**(before or {}).get("metadata", {}), **body["metadata"]}}
        namespace = body["metadata"].get("namespace")
        if dry and namespace and f"/api/v1/namespaces/{namespace}" not in self.objects:
            return 404, fake_api._status(f"namespaces {namespace} not found")
        is_ours = {"manager": "kubectl-pacto"} in wanted["metadata"].get("managedFields", ())
        if before is not None and is_ours and all(before.get(key) == wanted[key] for key in wanted):
            return 200, before
        merged = {**(before or {}), **wanted}
        if dry:
            return (200 if before else 201), merged
        merged["metadata"] = {**merged["metadata"], "managedFields": [{"manager": "kubectl-pacto"}]}
        if self.ready:
            merged["status"] = READY.get(body["kind"], {})
            self._operate(body)
        return (200 if before else 201), self.put(path, merged)

    def _operate(self, body: Raw) -> None:
        """What an operator does once it runs: its agents, where their namespace is."""
        agents = "pacto-node-agent"
        if self.operates and body["kind"] == "Deployment" and f"/api/v1/namespaces/{agents}" in self.objects:
            names = ("desiredNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled")
            counts = dict.fromkeys(names, 2)
            self.add({**desired(_agent_of(body)), "status": counts})

    def _is_collection(self, path: str) -> bool:
        plural = path.rpartition("/")[2]
        crds = [raw["spec"] for raw in self.objects.values() if raw.get("kind") == "CustomResourceDefinition"]
        if any(spec.get("names", {}).get("plural") == plural for spec in crds):
            return True
        return plural in self.served or any(where.split("/")[-2] == plural for where in self.objects)

    def _members(self, path: str) -> list[Raw]:
        base, _, plural = path.rpartition("/")
        return [
            raw
            for where, raw in sorted(self.objects.items())
            if where.split("/")[-2] == plural and (where.startswith((f"{path}/", f"{base}/namespaces/")))
        ]

    def _list(self, path: str, query: dict[str, str]) -> Raw:
        found = [raw for raw in self._members(path) if _selected(raw, query)]
        start = int(query.get("continue", 0))
        size = self.page or int(query.get("limit", 0)) or len(found)
        more = str(start + size) if start + size < len(found) else ""
        metadata = {"resourceVersion": str(self.version), **({"continue": more} if more else {})}
        return {"kind": "List", "metadata": metadata, "items": found[start : start + size]}


def _agent_of(deployment: Raw) -> NodeAgentValues:
    """What an operator of this Deployment was told about its agents; the defaults where nothing."""
    arguments = deployment["spec"]["template"]["spec"]["containers"][0].get("args", ())
    return settings(arguments, {"POD_NAMESPACE": "any"}).agent or NodeAgentValues()


def _selected(raw: Raw, query: dict[str, str]) -> bool:
    labels = raw["metadata"].get("labels") or {}
    for part in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = part.partition("=")
        if labels.get(key) != value:
            return False
    key, _, value = query.get("fieldSelector", "").partition("=")
    found: Any = raw
    for step in key.split(".") if key else ():
        found = (found or {}).get(step)
    return not key or found == value


@contextmanager
def serve_fleet(api: FleetApi) -> Iterator[str]:
    """Run the server until the block ends; its URL."""
    made = fake_api._handler

    def handler(served: FakeApi) -> Any:
        base = made(served)

        class Handler(base):  # type: ignore[misc, valid-type]
            disable_nagle_algorithm = True
            do_PATCH = do_DELETE = base._serve  # type: ignore[attr-defined]  # noqa: N815

            def date_time_string(self, timestamp: float | None = None) -> str:  # noqa: ARG002
                return DATE

        return Handler

    fake_api._handler = handler  # type: ignore[assignment]
    try:
        with serve(api) as server:
            yield f"http://{server.host}:{server.port}"
    finally:
        fake_api._handler = made
