# SPDX-License-Identifier: MIT
"""OCI archives: layout, digests, shared layers."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

from tests.images import oci


def layer(tmp_path: Path, name: str) -> oci.Layer:
    """A layer with one file."""
    path = tmp_path / f"{name}.tar"
    with tarfile.open(path, "w") as tar:
        oci.add_bytes(tar, name, name.encode())
    return oci.Layer.of(path)


def read(archive: Path) -> dict[str, bytes]:
    """Every file of an archive."""
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def manifests(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """The manifests that the index names."""
    index = json.loads(files["index.json"])
    return [json.loads(blob(files, entry)) for entry in index["manifests"]]


def blob(files: dict[str, bytes], named: dict[str, Any]) -> bytes:
    """The blob that a descriptor names."""
    return files[f"blobs/sha256/{named['digest'].removeprefix('sha256:')}"]


def test_every_blob_is_named_by_its_digest_and_size(tmp_path: Path) -> None:
    """What a container runtime checks."""
    image = oci.Image("localhost/one:1", (layer(tmp_path, "a"), layer(tmp_path, "b")), ("run",))
    files = read(oci.write(tmp_path / "out.tar", [image]))
    (manifest,) = manifests(files)
    for named in [manifest["config"], *manifest["layers"]]:
        content = blob(files, named)
        assert named["size"] == len(content)
        assert named["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    config = json.loads(blob(files, manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [named["digest"] for named in manifest["layers"]]
    assert config["config"]["Cmd"] == ["run"]


def test_images_of_one_archive_share_layers_and_keep_their_names(tmp_path: Path) -> None:
    """Two images over one base."""
    below = layer(tmp_path, "base")
    images = [oci.Image(f"localhost/{name}:1", (below, layer(tmp_path, name))) for name in ("x", "y")]
    files = read(oci.write(tmp_path / "out.tar", images))
    names = [
        entry["annotations"]["io.containerd.image.name"]
        for entry in json.loads(files["index.json"])["manifests"]
    ]
    assert names == ["localhost/x:1", "localhost/y:1"]
    assert len([name for name in files if name.startswith("blobs/")]) == 3 + 2 * 2


def test_the_same_image_gives_the_same_bytes(tmp_path: Path) -> None:
    """Configuration and manifest depend on nothing but the image."""
    image = oci.Image("localhost/one:1", (layer(tmp_path, "a"),), ("run",))
    first, second = (read(oci.write(tmp_path / name, [image])) for name in ("1.tar", "2.tar"))
    assert first == second
