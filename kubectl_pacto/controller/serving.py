# SPDX-License-Identifier: MIT
"""TLS for the metrics, with certificates that may be renewed at any time, and who may read them.

Whoever asks is asked of the API server: a bearer token that it knows, of somebody who may `get` the
non-resource URL /metrics. That takes the rights of the ClusterRole system:auth-delegator.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubectl_pacto.errors import UsageError
from kubectl_pacto.kube.client import Client
from kubectl_pacto.kube.errors import ApiError

LOG: Final = logging.getLogger(__name__)
KEPT_SECONDS: Final = 30.0
KEPT_ANSWERS: Final = 100
REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A folder, as a Secret is mounted, and the names in it."""

    folder: str
    certificate: str = "tls.crt"
    key: str = "tls.key"

    @property
    def paths(self) -> tuple[Path, Path]:
        """Where certificate and key are."""
        return Path(self.folder, self.certificate), Path(self.folder, self.key)


class Certificates:
    """The context for the next connection; files are looked at for each. Raises UsageError if unusable."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        try:
            self._mark = self._look()
            self._context = self._load()
        except (OSError, ValueError) as error:
            # ssl.SSLError is an OSError
            problem = f"no usable certificate {files.certificate} with key {files.key}: {error}"
            raise UsageError(f"--metrics-cert-path {files.folder}: {problem}") from None

    def _look(self) -> tuple[tuple[int, int], ...]:
        return tuple((found.st_ino, found.st_mtime_ns) for found in map(Path.stat, self._files.paths))

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        certificate, key = self._files.paths
        context.load_cert_chain(certificate, key)
        return context

    def context(self) -> ssl.SSLContext:
        """Of the files as they are; while these cannot be used, of what they were before."""
        with self._lock:
            try:
                mark = self._look()
                if mark != self._mark:
                    self._context = self._load()
                    self._mark = mark  # only now: what failed for a moment is tried again
                    LOG.info("the certificate of the metrics was renewed")
            except (OSError, ValueError) as error:
                LOG.warning("the certificate of the metrics cannot be renewed: %s", error)
            return self._context


class Guard:
    """Who may read metrics; `client` is made for each question that is asked of the API server."""

    def __init__(self, client: Callable[[], Client], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        # digest of a token -> status and until when it stands
        self._known: dict[bytes, tuple[int, float]] = {}

    def check(self, authorization: str) -> int:
        """200, or the HTTP status of the refusal: 401, 403, or 503 while nobody can tell."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401
        mark, now = hashlib.sha256(token.encode()).digest(), self._clock()
        with self._lock:
            kept = self._known.get(mark)
        if kept is not None and kept[1] > now:
            return kept[0]
        status = self._ask(token.strip())
        if status != 503:
            with self._lock:
                if len(self._known) >= KEPT_ANSWERS:
                    self._known.clear()
                self._known[mark] = status, now + KEPT_SECONDS
        return status

    def _ask(self, token: str) -> int:
        client = self._client()
        try:
            review = _post(client, REVIEWS, "authentication.k8s.io/v1", "TokenReview", {"token": token})
            if not review.get("authenticated"):
                return 401
            user = review.get("user") or {}
            spec = {
                "user": user.get("username", ""),
                "uid": user.get("uid", ""),
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            }
            access = _post(client, ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
            return 200 if access.get("allowed") else 403
        except ApiError as error:
            LOG.warning("who may read metrics: %s", error)
            return 503
        finally:
            client.close()


def _post(client: Client, path: str, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, {"apiVersion": version, "kind": kind, "spec": spec})
    return dict(answer.get("status") or {})
