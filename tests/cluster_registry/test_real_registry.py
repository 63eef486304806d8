# SPDX-License-Identifier: MIT
"""Bundles in a real registry server, Debian's docker-registry, with and without a password."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubectl_pacto.collect.contracts import Contracts
from kubectl_pacto.collect.credentials import Credentials
from kubectl_pacto.collect.registry import Registry
from kubectl_pacto.collect.registry_errors import ArtifactNotFound, RegistryDenied
from tests.support.bundles import CONTRACT, MANIFEST, archive, digest, manifest
from tests.support.debian import unpacked
from tests.support.require import require

LAYER = archive({"pacto.yaml": CONTRACT, "interfaces/openapi.yaml": b"openapi: 3.0.0\n"})
# me with the password "secret", bcrypt
HTPASSWD = "me:$2b$05$sjNpDqEKdP6US0cntqxRNOKUuFzEWEA5lu.p81WJdMKJtD6EBsSFS\n"
CONFIG = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {root}/data}}}}
http: {{addr: "127.0.0.1:{port}", secret: none}}
{auth}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def send(host: str, method: str, url: str, body: bytes, headers: dict[str, str]) -> str:
    """Send a request that must be accepted; the location it answers with, as a path."""
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.request(method, url.partition(host)[2] or url, body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (201, 202), (method, url, answer.status)
        return answer.headers.get("Location", "")
    finally:
        connection.close()


def push(
    host: str, repository: str, tags: list[str], credentials: Credentials | None, layer: bytes = LAYER
) -> None:
    headers = {"Authorization": credentials.basic()} if credentials else {}
    for blob in (layer, b"{}"):
        where = send(host, "POST", f"/v2/{repository}/blobs/uploads/", b"", headers)
        kind = {"Content-Type": "application/octet-stream"}
        send(host, "PUT", f"{where}&digest={digest(blob)}", blob, {**headers, **kind})
    for tag in tags:
        kind = {"Content-Type": MANIFEST}
        send(host, "PUT", f"/v2/{repository}/manifests/{tag}", manifest(layer), {**headers, **kind})


@contextmanager
def running(folder: Path, *, has_password: bool) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A registry on loopback, with the password of HTPASSWD or without any: its host, its process."""
    program = unpacked("docker-registry", "docker-registry")
    require("cluster", "" if program else "Debian's docker-registry cannot be had")
    assert program is not None
    port, auth = free_port(), ""
    if has_password:
        (folder / "htpasswd").write_text(HTPASSWD)
        auth = f"auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}"
    config = folder / "config.yml"
    config.write_text(CONFIG.format(root=folder, port=port, auth=auth))
    process = subprocess.Popen(
        [program, "serve", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(1200):
            assert process.poll() is None, "the registry ended"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError("the registry does not listen")
        yield f"127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGCONT)  # a test may have stopped it
        process.terminate()
        process.wait(60)


@pytest.fixture(params=["open", "htpasswd"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Credentials | None]]:
    has_password = request.param == "htpasswd"
    with running(tmp_path, has_password=has_password) as (host, _):
        yield host, Credentials("me", "secret") if has_password else None


def test_a_bundle_comes_back_by_tag_digest_and_highest_version(
    server: tuple[str, Credentials | None],
) -> None:
    host, credentials = server
    push(host, "team/shop", ["1.2.0", "1.10.0", "edge"], credentials)
    loader = Contracts(lambda ref, own: Registry(ref, own, insecure=True), time.monotonic)
    latest = loader.load(f"oci://{host}/team/shop", credentials)
    assert latest.resolved_ref == f"{host}/team/shop:1.10.0"
    assert latest.files == {"pacto.yaml": CONTRACT, "interfaces/openapi.yaml": b"openapi: 3.0.0\n"}
    pinned = loader.load(f"oci://{host}/team/shop@{latest.digest}", credentials)
    assert pinned.files == latest.files
    assert loader.load(f"{host}/team/shop:edge", credentials).digest == latest.digest
    with pytest.raises(ArtifactNotFound):
        loader.load(f"{host}/team/shop:9.9.9", credentials)
    with pytest.raises(ArtifactNotFound):
        loader.load(f"{host}/nobody/shop:1.0.0", credentials)
    if credentials is not None:
        for wrong in (None, Credentials("me", "guess")):
            with pytest.raises(RegistryDenied):
                loader.load(f"{host}/team/shop:1.2.0", wrong)
