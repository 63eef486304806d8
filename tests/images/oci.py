# SPDX-License-Identifier: MIT
"""OCI archives: the image layout in a tar file, as `ctr images import` and `kind load` take it."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True)
class Layer:
    """One uncompressed tar file."""

    path: Path
    digest: str
    size: int

    @classmethod
    def of(cls, path: Path) -> Layer:
        """The layer of a tar file; its digest is kept beside it, for it never changes."""
        beside = path.with_name(f"{path.name}.sha256")
        if not beside.exists():
            with path.open("rb") as source:
                beside.write_text(hashlib.file_digest(source, "sha256").hexdigest())
        return cls(path, beside.read_text(), path.stat().st_size)


@dataclass(frozen=True)
class Image:
    """A name, layers from the bottom up, and what the image runs."""

    name: str
    layers: tuple[Layer, ...]
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    user: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    architecture: str = ARCHITECTURES.get(platform.machine(), "")

    def config(self) -> bytes:
        """The image's configuration."""
        run: dict[str, Any] = {"Env": [PATH, *self.environment], "WorkingDir": "/"}
        if self.command:
            run["Cmd"] = self.command
        if self.entrypoint:
            run["Entrypoint"] = self.entrypoint
        if self.user:
            run["User"] = self.user
        if self.labels:
            run["Labels"] = self.labels
        diff_ids = [f"sha256:{layer.digest}" for layer in self.layers]
        return encode(
            {
                "architecture": self.architecture,
                "os": "linux",
                "config": run,
                "rootfs": {"type": "layers", "diff_ids": diff_ids},
            }
        )


def encode(value: object) -> bytes:
    """JSON whose bytes depend on nothing but the value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def descriptor(media_type: str, digest: str, size: int) -> dict[str, Any]:
    """How one blob names another."""
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}


def write(target: Path, images: Sequence[Image]) -> Path:
    """One archive with these images; a layer that several share is in it once."""
    blobs: dict[str, bytes] = {}
    layers: dict[str, Layer] = {}

    def add(media_type: str, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return descriptor(media_type, digest, len(data))

    entries = []
    for image in images:
        layers |= {layer.digest: layer for layer in image.layers}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": add(CONFIG_TYPE, image.config()),
            "layers": [descriptor(LAYER_TYPE, layer.digest, layer.size) for layer in image.layers],
        }
        names = {"io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": image.name}
        entries.append(add(MANIFEST_TYPE, encode(manifest)) | {"annotations": names})
    unfinished = target.with_name(f"{target.name}.part")
    with tarfile.open(unfinished, "w") as tar:
        add_bytes(tar, "oci-layout", encode({"imageLayoutVersion": "1.0.0"}))
        add_bytes(tar, "index.json", encode({"schemaVersion": 2, "manifests": entries}))
        for digest, data in blobs.items():
            add_bytes(tar, f"blobs/sha256/{digest}", data)
        for digest, layer in layers.items():
            tar.add(layer.path, f"blobs/sha256/{digest}")
    unfinished.rename(target)
    return target


def add_bytes(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """A file from memory, owned by root, without a time of its own."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = mode
    tar.addfile(info, io.BytesIO(data))
