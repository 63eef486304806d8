# SPDX-License-Identifier: MIT
"""Images for test pods: our small servers and client, and real servers from Debian."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from tests.cluster.layout import ClusterError
from tests.images import base, oci

SCRIPT: Final = Path(__file__).parent / "workload" / "workload.py"
PREFIX: Final = "localhost/pacto"
# image name -> what the workload program is told; one layer under all of them
SMALL: Final = {
    "http": ("http",),
    "tcp": ("tcp",),
    "tls": ("tls",),
    "h2c": ("h2c",),
    "silent": ("silent",),
    "client": ("client", "127.0.0.1:8080"),
}
# Each in the foreground, without a configuration to mount; postgresql makes its own database first.
REAL: Final = {
    "nginx": ("nginx", "-g", "daemon off;"),
    "redis": ("redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", "/tmp"),
    "postgresql": ("/usr/local/bin/start-postgresql",),
}
START_POSTGRESQL: Final = """\
#!/bin/sh
set -e
bin=$(echo /usr/lib/postgresql/*/bin)
install -d -o postgres -g postgres /tmp/postgresql
run() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
run "$bin/initdb" -D /tmp/postgresql -A trust >/dev/null
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" \\
  -D /tmp/postgresql -k /tmp -c listen_addresses='*' -c jit=off -c fsync=off
"""


def name(workload: str) -> str:
    """The image's name in a pod: localhost/pacto-http:1."""
    return f"{PREFIX}-{workload}:1"


def key_pair() -> tuple[bytes, bytes]:
    """A self-signed certificate and its key, for the TLS server."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", "-", "-out", "-", "-subj", "/CN=workload", "-days", "3650"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"openssl: {done.stderr.strip()}")
    key, mark, certificate = done.stdout.partition("-----BEGIN CERTIFICATE-----")
    return (mark + certificate).encode(), key.encode()


def small_layer() -> oci.Layer:
    """The workload program and the TLS server's key pair."""
    path = base.images_cache() / f"workload-{hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:12]}.tar"
    with base.locked(path):
        if not path.exists():
            certificate, key = key_pair()
            unfinished = path.with_name(f"{path.name}.part")
            with tarfile.open(unfinished, "w") as tar:
                oci.add_bytes(tar, "usr/local/bin/workload", SCRIPT.read_bytes(), mode=0o755)
                oci.add_bytes(tar, "usr/local/share/workload/tls.crt", certificate)
                oci.add_bytes(tar, "usr/local/share/workload/tls.key", key)
            unfinished.rename(path)
    return oci.Layer.of(path)


def real_layer() -> oci.Layer:
    """What postgresql needs to start by itself."""
    path = base.images_cache() / f"servers-{hashlib.sha256(START_POSTGRESQL.encode()).hexdigest()[:12]}.tar"
    with base.locked(path):
        if not path.exists():
            unfinished = path.with_name(f"{path.name}.part")
            with tarfile.open(unfinished, "w") as tar:
                oci.add_bytes(tar, "usr/local/bin/start-postgresql", START_POSTGRESQL.encode(), mode=0o755)
                for directory in ("var/log/nginx", "var/lib/nginx"):
                    info = tarfile.TarInfo(directory)
                    info.type, info.mode = tarfile.DIRTYPE, 0o777
                    tar.addfile(info)
            unfinished.rename(path)
    return oci.Layer.of(path)


def archive(images: list[oci.Image], stem: str) -> Path:
    """These images as one archive, cached by what is in it."""
    digest = hashlib.sha256(b"".join(image.name.encode() + image.config() for image in images)).hexdigest()
    path = base.images_cache() / f"{stem}-{digest[:12]}.oci.tar"
    with base.locked(path):
        return path if path.exists() else oci.write(path, images)


def small_archive() -> Path:
    """All small workloads in one archive."""
    layers = (base.BASE.layer(), small_layer())
    entrypoint = ("/usr/local/bin/workload",)
    images = [oci.Image(name(key), layers, command, entrypoint) for key, command in SMALL.items()]
    return archive(images, "workloads")


def real_archive() -> Path:
    """nginx, redis and postgresql in one archive."""
    layers = (base.SERVERS.layer(), real_layer())
    return archive([oci.Image(name(key), layers, command) for key, command in REAL.items()], "servers")
