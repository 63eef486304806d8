# SPDX-License-Identifier: MIT
"""A small API client for tests: plain JSON over one kubeconfig, no object models.

It is the tests' own on purpose: a test that looks through the product's client would not see what
that client gets wrong.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Object = dict[str, Any]
TIMEOUT_SECONDS: Final = 30
NOT_FOUND: Final = 404


class ApiError(Exception):
    """The API server's refusal."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        """Keep the status and what the server said."""
        self.status = status
        try:
            self.details: Object = json.loads(body)
        except ValueError:
            self.details = {"message": body[:500]}
        super().__init__(f"{method} {path}: {status} {self.details.get('message', body[:500])}")


@dataclass
class Api:
    """One server and the credentials for it."""

    host: str
    port: int
    tls: ssl.SSLContext
    token: str = ""
    timeout: float = TIMEOUT_SECONDS
    kinds: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Api:
        """From a kubeconfig in JSON with certificate files, as this package writes them."""
        config = json.loads(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate" in user:
            tls.load_cert_chain(user["client-certificate"], user["client-key"])
        server = urllib.parse.urlsplit(cluster["server"])
        return cls(server.hostname or "", server.port or 443, tls)

    def with_token(self, token: str, authority: Path) -> Api:
        """The same server as somebody else: a ServiceAccount by its token."""
        tls = ssl.create_default_context(cafile=str(authority))
        return Api(self.host, self.port, tls, token, self.timeout, self.kinds)

    def raw(
        self, method: str, path: str, body: str | None = None, content_type: str = "application/json"
    ) -> str:
        """One request; the body of a good answer, or ApiError."""
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=self.timeout)
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiError(method, path, answer.status, text)
        return text

    def resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        """The plural name of a kind and whether it is namespaced, from discovery."""
        if (api_version, kind) not in self.kinds:
            root = "/apis/" if "/" in api_version else "/api/"
            for item in json.loads(self.raw("GET", root + api_version))["resources"]:
                if "/" not in item["name"]:
                    self.kinds[api_version, item["kind"]] = (item["name"], item["namespaced"])
        if (api_version, kind) not in self.kinds:
            # the kinds of a group become known one by one: whoever waits for this one waits on
            raise ApiError("GET", root + api_version, NOT_FOUND, f"no {kind} there")
        return self.kinds[api_version, kind]

    def path(self, api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
        """The path of a collection or of an object; no namespace means all of them."""
        plural, namespaced = self.resource(api_version, kind)
        parts = ["/apis" if "/" in api_version else "/api", api_version]
        if namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, plural, *([name] if name else [])])

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object; None when it does not exist."""
        try:
            return self._object("GET", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def items(self, api_version: str, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """A collection's objects, by label selector where given."""
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        found = self._object("GET", self.path(api_version, kind, namespace) + query)
        return list(found["items"])

    def create(self, manifest: Object) -> Object:
        """Create an object."""
        metadata = manifest["metadata"]
        path = self.path(manifest["apiVersion"], manifest["kind"], metadata.get("namespace", ""))
        return self._object("POST", path, manifest)

    def replace(self, manifest: Object) -> Object:
        """A plain replace."""
        return self._object("PUT", self._path_of(manifest), manifest)

    def apply(self, *manifests: Object) -> list[Object]:
        """Server-side apply, in order."""
        content_type = "application/apply-patch+yaml"
        query = "?fieldManager=pacto-tests&force=true"
        return [self._object("PATCH", self._path_of(item) + query, item, content_type) for item in manifests]

    def patch(self, api_version: str, kind: str, name: str, change: Object, namespace: str = "") -> Object:
        """A merge patch."""
        path = self.path(api_version, kind, namespace, name)
        return self._object("PATCH", path, change, "application/merge-patch+json")

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object; one that is gone already is fine."""
        try:
            self.raw("DELETE", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def _path_of(self, manifest: Object) -> str:
        metadata = manifest["metadata"]
        return self.path(
            manifest["apiVersion"], manifest["kind"], metadata.get("namespace", ""), metadata["name"]
        )

    def _object(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        text = self.raw(method, path, None if body is None else json.dumps(body), content_type)
        found: Object = json.loads(text)
        return found
