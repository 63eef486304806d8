# SPDX-License-Identifier: MIT
"""The requests to a registry that a contract needs: tags, a digest, a manifest, a blob.

Credentials go to the registry itself, and to the token service that it names over TLS; a redirect
carries them nowhere else. Everything read has a bound of size and of time.
"""

from __future__ import annotations

import hashlib
import json
import re
import ssl
import time
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kubectl_pacto import __version__
from kubectl_pacto.collect.bounded_http import handlers
from kubectl_pacto.collect.credentials import DOCKER_HUB, Credentials, normal_host
from kubectl_pacto.collect.registry_errors import (
    ArtifactNotFound,
    BadArtifact,
    RegistryDenied,
    RegistryUnreachable,
)
from kubectl_pacto.model.ociref import OciRef

MANIFEST_TYPES: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
MANIFEST_BYTES: Final = 4 << 20
SOCKET_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 60.0
_MAX_REDIRECTS: Final = 5
_MAX_PAGES: Final = 100
_CHUNK: Final = 64 << 10
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
# 200 without the header, and what servers answer that know no HEAD
_NO_HEAD: Final = (200, 405, 501)
_PARAMETER: Final = re.compile(r'([a-zA-Z]+)="([^"]*)"')


class _NoRedirect(HTTPRedirectHandler):
    """Redirects are followed here, by hand: who may see a credential is decided at each."""

    def http_error_302(self, *_: object) -> None:
        return None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]


class Registry:
    """One repository's registry. `insecure` speaks plain HTTP, for registries that were allowed to."""

    def __init__(
        self,
        ref: OciRef,
        credentials: Credentials | None = None,
        *,
        insecure: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._ref, self._credentials, self._insecure = ref, credentials, insecure
        host, self._path = ref.registry, ref.repository
        if normal_host(host) == DOCKER_HUB:
            host = "registry-1.docker.io"
            self._path = ref.repository if "/" in ref.repository else f"library/{ref.repository}"
        self._base = f"{'http' if insecure else 'https'}://{host}"
        self._authorization = f"Bearer {credentials.token}" if credentials and credentials.token else ""
        self._opener = build_opener(_NoRedirect(), *handlers(REQUEST_SECONDS, context))

    def tags(self) -> list[str]:
        """All tags of the repository."""
        found: list[str] = []
        url = f"{self._base}/v2/{self._path}/tags/list"
        for _ in range(_MAX_PAGES):
            body, headers = self._get(url, "application/json", MANIFEST_BYTES)
            listed = self._json(body).get("tags")
            tags = [tag for tag in listed if isinstance(tag, str)] if isinstance(listed, list) else []
            found += tags
            link = re.match(r'\s*<([^>]+)>\s*;\s*rel="?next"?', headers.get("Link", ""))
            onward = _joined(url, link[1]) if link else ""
            # a next page elsewhere would be another registry's word about this repository
            if not onward or not self._is_home(onward) or not tags:
                break
            url = onward
        return found

    def manifest(self, reference: str) -> tuple[bytes, str]:
        """The manifest of a tag or digest, and the media type it was sent as."""
        url = f"{self._base}/v2/{self._path}/manifests/{quote(reference, safe=':')}"
        body, headers = self._get(url, ", ".join(MANIFEST_TYPES), MANIFEST_BYTES)
        return body, headers.get("Content-Type", "").partition(";")[0].strip()

    def digest(self, reference: str) -> str:
        """The digest of a tag's manifest, without its content where the registry tells it so."""
        url = f"{self._base}/v2/{self._path}/manifests/{quote(reference, safe=':')}"
        with self._ask(url, ", ".join(MANIFEST_TYPES), "HEAD") as response:
            told = response.headers.get("Docker-Content-Digest", "")
            if response.status == 200 and _DIGEST.fullmatch(told):
                return told
            if response.status not in _NO_HEAD:
                self._check(response.status)
        return f"sha256:{hashlib.sha256(self.manifest(reference)[0]).hexdigest()}"

    def blob(self, digest: str, limit: int) -> bytes:
        """A blob of at most `limit` bytes."""
        body, _ = self._get(f"{self._base}/v2/{self._path}/blobs/{digest}", "*/*", limit)
        return body

    def _json(self, body: bytes) -> dict[str, object]:
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise RegistryUnreachable(ref=self._ref, problem="it answers with something that is not JSON")
        return data

    def _get(self, url: str, accept: str, limit: int) -> tuple[bytes, Message]:
        """The body and headers of a GET, authorized if the registry asks for it."""
        with self._ask(url, accept, "GET") as response:
            self._check(response.status)
            return self._read(response, limit), response.headers

    def _ask(self, url: str, accept: str, method: str) -> HTTPResponse:
        """The answer to a request, which is sent again with what the registry asks for."""
        response = self._follow(url, accept, self._authorization, method)
        if response.status != 401:
            return response
        with response:
            self._authorization = self._authorize(response.headers.get("WWW-Authenticate", ""))
        return self._follow(url, accept, self._authorization, method)

    def _check(self, status: int) -> None:
        if status in (401, 403):
            raise RegistryDenied(ref=self._ref, problem=f"status {status}; is there a pull secret for it?")
        if status == 404:
            raise ArtifactNotFound(ref=self._ref)
        if status != 200:
            raise RegistryUnreachable(ref=self._ref, problem=f"it answers with status {status}")

    def _follow(self, url: str, accept: str, authorization: str, method: str = "GET") -> HTTPResponse:
        """The answer at the end of a few redirects."""
        start = url
        for _ in range(_MAX_REDIRECTS + 1):
            headers = {"Accept": accept, "User-Agent": f"kubectl-pacto/{__version__}"}
            if authorization and _origin(url) == _origin(start):
                headers["Authorization"] = authorization
            request = Request(url, headers=headers, method=method)  # noqa: S310 -- schemes are checked below
            response = self._open(request)
            if response.status not in (301, 302, 303, 307, 308):
                return response
            with response:
                url = _joined(url, response.headers.get("Location", ""))
            if not self._is_allowed(url):
                raise RegistryUnreachable(ref=self._ref, problem="it redirects to where TLS ends")
        raise RegistryUnreachable(ref=self._ref, problem="it redirects without end")

    def _open(self, request: Request) -> HTTPResponse:
        try:
            response: HTTPResponse = self._opener.open(request, timeout=SOCKET_SECONDS)
        except HTTPError as error:
            response = error  # type: ignore[assignment]  # an HTTPError is a response with a body
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise RegistryUnreachable(ref=self._ref, problem=str(reason)) from None
        return response

    def _is_allowed(self, url: str) -> bool:
        return _split(url).scheme in (("http", "https") if self._insecure else ("https",))

    def _is_home(self, url: str) -> bool:
        return _origin(url) == _origin(self._base)

    def _authorize(self, challenge: str) -> str:
        """The authorization that a registry's challenge asks for."""
        scheme, _, rest = challenge.partition(" ")
        parameters = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
        credentials = self._credentials
        if scheme.lower() == "basic" and credentials and credentials.username:
            return credentials.basic()
        if scheme.lower() != "bearer" or (credentials and credentials.token):
            raise RegistryDenied(ref=self._ref, problem="it asks for credentials that were not given")
        realm = parameters.get("realm", "")
        if not self._is_allowed(realm):
            raise RegistryDenied(ref=self._ref, problem="its token service is not behind TLS")
        scope = parameters.get("scope") or f"repository:{self._path}:pull"
        query = urlencode({"service": parameters.get("service", ""), "scope": scope})
        basic = credentials.basic() if credentials and credentials.username else ""
        glue = "&" if urlsplit(realm).query else "?"
        with self._follow(f"{realm}{glue}{query}", "application/json", basic) as response:
            self._check(response.status)
            data = self._json(self._read(response, MANIFEST_BYTES))
        token = data.get("token") or data.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            raise RegistryDenied(ref=self._ref, problem="its token service gives no token")
        return f"Bearer {token}"

    def _read(self, response: HTTPResponse, limit: int) -> bytes:
        end = time.monotonic() + REQUEST_SECONDS
        parts: list[bytes] = []
        size = 0
        try:
            while part := response.read(_CHUNK):
                size += len(part)
                if size > limit:
                    raise BadArtifact(ref=self._ref, problem=f"it is larger than {limit} bytes")
                if time.monotonic() > end:
                    raise RegistryUnreachable(ref=self._ref, problem="it sends too slowly")
                parts.append(part)
        except (OSError, HTTPException) as error:
            raise RegistryUnreachable(ref=self._ref, problem=str(error) or "it broke off") from None
        return b"".join(parts)


def _split(url: str) -> SplitResult:
    """The parts of an address; none of one that is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _joined(base: str, url: str) -> str:
    """An address as seen from another; empty if it is none."""
    try:
        return urljoin(base, url)
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = _split(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port or default
