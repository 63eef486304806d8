# SPDX-License-Identifier: MIT
"""Builds the krew archives and, from plugin.yaml, the krew manifest (`make krew`).

The archive of this machine's platform is a PyInstaller folder: the plugin without native parts, its own
Python, nothing else. The one of all others has Python files alone (krew_pure.py). The same sources,
builder and versions give the same bytes wherever they are built; the first archive's requirements.txt
names the versions, and `--constraint` takes that file again.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kubectl_pacto.cli.completion_cmd import SCRIPT as COMPLETION
from scripts import krew_pure

ROOT: Final = Path(__file__).resolve().parent.parent
TEMPLATE: Final = ROOT / "plugin.yaml"
ENTRY: Final = ROOT / "scripts" / "krew_entry.py"
NAME: Final = "kubectl-pacto"
SOURCES: Final = (
    "kubectl_pacto",
    "agent",
    "ext",
    "bpf",
    "*.py",
    "*.toml",
    "*.in",
    "README.md",
    "LICENSE",
    "NOTICE",
)
# (os, machine) as Python says them -> as krew does
PLATFORMS: Final[Mapping[tuple[str, str], str]] = {("linux", "x86_64"): "linux_amd64"}
# what the plugin never imports, and what PyInstaller would bring along for others
LEFT_OUT: Final = (
    *("pacto_agent", "pacto_native", "cffi", "_cffi_backend", "elftools", "kubernetes"),
    *("setuptools", "pkg_resources", "distutils", "_distutils_hack", "pip", "readline", "sqlite3", "tkinter"),
)
# installed beside the plugin, and no part of the archive
TOOLS: Final = frozenset(
    {"altgraph", "cffi", "kubectl_pacto", "packaging", "pycparser", "pyelftools", "setuptools"}
)
# files of the folder that nobody reads there; the first four say where and how something was installed
UNREAD: Final = re.compile(
    r"\.dist-info/(RECORD|INSTALLER|REQUESTED|direct_url\.json)$|^_internal/jsonschema/benchmarks/"
)
# shared libraries that may come along, with their licences
LIBRARIES: Final[Mapping[str, str]] = {
    "libbz2": "bzip2-1.0.6, https://sourceware.org/bzip2",
    "libcrypto": "OpenSSL: Apache-2.0, https://openssl-library.org",
    "libexpat": "MIT, https://libexpat.github.io",
    "libffi": "MIT, https://sourceware.org/libffi",
    "libgcc_s": "GCC: GPL-3.0-or-later WITH GCC-exception-3.1, https://gcc.gnu.org",
    "liblzma": "XZ Utils: 0BSD or public domain, https://tukaani.org/xz",
    "libmpdec": "BSD-2-Clause, https://www.bytereef.org/mpdecimal",
    "libpython": "CPython: PSF-2.0, https://www.python.org",
    "libssl": "OpenSSL: Apache-2.0, https://openssl-library.org",
    "libuuid": "util-linux: BSD-3-Clause, https://github.com/util-linux/util-linux",
    "libyaml": "MIT, https://pyyaml.org/wiki/LibYAML",
    "libz": "Zlib, https://zlib.net",
}


class KrewError(Exception):
    """The archive cannot be built here, or would break a rule of krew."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A finished archive: what the manifest says of it."""

    path: Path
    platform: str
    version: str
    glibc: str

    @property
    def sha256(self) -> str:
        """The digest that krew compares, in lower case as it asks."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def run(work: Path, *command: str | Path, **environment: str) -> str:
    """Run one program in `work`, blind to this process's Python settings; returns its output."""
    clean = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PYTHON", "PACTO_", "PIP_CON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=work,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-4000:]
        raise KrewError(f"{Path(str(command[0])).name} ended with status {done.returncode}:\n{said}")
    return done.stdout


def this_platform() -> str:
    """krew's name of this machine; raises KrewError where no archive can be built."""
    here = (sys.platform, platform.machine())
    if here not in PLATFORMS:
        raise KrewError(
            f"no archive is built on {' '.join(here)}: a self-contained folder is not cross-built"
        )
    return PLATFORMS[here]


def semantic(version: str) -> str:
    """A version of ours as krew wants it: semantic, after a `v`."""
    numbers, word, count = re.fullmatch(r"(\d+\.\d+\.\d+)(?:(rc|\.dev)(\d+))?", version).groups()  # type: ignore[union-attr]
    return f"v{numbers}" + (f"-{word.strip('.')}.{count}" if word else "")


def source_date() -> int:
    """SOURCE_DATE_EPOCH, else when the checkout's commit was made."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    return int(run(ROOT, "git", "log", "-1", "--format=%ct"))


def copy_sources(work: Path) -> Path:
    """What git knows of the packages, away from what earlier builds left in the checkout."""
    target = work / "source"
    listed = run(ROOT, "git", "ls-files", "-z", "--", *SOURCES)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    return target


def install(work: Path, constraint: Path | None) -> Path:
    """An environment with the pure plugin and PyInstaller alone; returns its Python."""
    python = work / "venv" / "bin" / "python"
    run(work, sys.executable, "-m", "venv", "--without-pip", work / "venv")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    pip += [
        "install",
        "--quiet",
        "--no-compile",
        *(["--constraint", str(constraint.resolve())] if constraint else []),
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    backend = [one for one in project["build-system"]["requires"] if one.startswith("setuptools")]
    run(work, *pip, *project["dependency-groups"]["krew"], *backend)
    run(work, *pip, "--no-build-isolation", copy_sources(work), PACTO_PURE="1")
    return python


def freeze(work: Path, python: Path, epoch: int) -> Path:
    """The PyInstaller folder."""
    out = work / "frozen"
    words = ["--noconfirm", "--log-level", "WARN", "--onedir", "--strip", "--name", NAME]
    words += ["--distpath", str(out), "--workpath", str(work / "build"), "--specpath", str(work)]
    words += ["--collect-submodules", "kubectl_pacto", "--collect-data", "kubectl_pacto"]
    words += [word for module in LEFT_OUT for word in ("--exclude-module", module)]
    fixed = {
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYINSTALLER_CONFIG_DIR": str(work / "cache"),
    }
    run(work, python, "-m", "PyInstaller", *words, shutil.copy(ENTRY, work / "plugin.py"), **fixed)
    return out / NAME


def python_licence() -> Path:
    """The licence of the Python that comes along."""
    version = sysconfig.get_python_version()
    library = Path(sysconfig.get_paths()["stdlib"])
    places = (library / "LICENSE.txt", library / "LICENSE", Path(f"/usr/share/doc/python{version}/copyright"))
    found = next((one for one in places if one.is_file()), None)
    if found is None:
        raise KrewError("this Python's licence is not where it usually is: " + ", ".join(map(str, places)))
    return found


def add_licences(folder: Path, site: Path) -> None:
    """Our LICENSE where krew looks for one, and those of everything that the folder brings along."""
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, folder / name)
    target = folder / "licenses"
    (target / "python").mkdir(parents=True)
    shutil.copyfile(python_licence(), target / "python" / "LICENSE")
    for info in sorted(site.glob("*.dist-info")):
        name = info.name.partition("-")[0].lower()
        texts = [
            one
            for one in info.rglob("*")
            if re.match(r"(LICEN[CS]E|COPYING|NOTICE)", one.name) and one.is_file()
        ]
        for text in texts if name not in TOOLS else []:
            (target / name).mkdir(exist_ok=True)
            shutil.copyfile(text, target / name / text.name)
    lines = []
    for library in sorted(one.name for one in (folder / "_internal").rglob("lib*.so*")):
        stem = re.sub(r"\d\.\d+$", "", library.partition(".so")[0])
        if stem not in LIBRARIES:
            raise KrewError(
                f"{library} would come along, and its licence is not listed in {Path(__file__).name}"
            )
        lines.append(f"{library}: {LIBRARIES[stem]}\n")
    (target / "LIBRARIES.txt").write_text("".join(lines))


def add_versions(folder: Path, work: Path, python: Path) -> None:
    """The versions that the folder was made with, in a form that `--constraint` takes."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    frozen = run(work, *pip, "freeze", "--all", "--exclude", "kubectl-pacto")
    head = f"# CPython {platform.python_version()}, {' '.join(platform.libc_ver())}, {platform.machine()}\n"
    (folder / "requirements.txt").write_text(head + frozen)


def contents(folder: Path) -> Iterator[tuple[str, bytes, int]]:
    """Name, bytes and mode of each file, sorted; a link gives the file that it means."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(paths):
        if not UNREAD.search(name):
            is_program = os.access(paths[name], os.X_OK)
            yield name, paths[name].read_bytes(), 0o755 if is_program else 0o644


def glibc_floor(folder: Path) -> str:
    """The newest symbol version of glibc that a file of the folder asks for."""
    found = {(0, 0)}
    for _, data, _ in contents(folder):
        if data.startswith(b"\x7fELF"):
            found |= {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", data)}
    return ".".join(map(str, max(found)))


def pack(folder: Path, archive: Path, epoch: int) -> None:
    """Write the archive: regular files only, as krew's extractor asks, and nothing of this machine."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data, mode in contents(folder):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), mode, epoch
            member.uname = member.gname = "root"
            tar.addfile(member, io.BytesIO(data))
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.open("wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write(raw.getvalue())


def build(work: Path, output: Path, constraint: Path | None) -> list[Archive]:
    """Build this platform's archive and the one of all others into `output`."""
    where, epoch = this_platform(), source_date()
    python = install(work, constraint)
    asked = "import kubectl_pacto; print(kubectl_pacto.__version__)"
    version = semantic(run(work, python, "-I", "-c", asked).strip())
    folder = freeze(work, python, epoch)
    site = Path(
        run(work, python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    add_licences(folder, site)
    add_versions(folder, work, python)
    krew_pure.write_program(folder / "kubectl_complete-pacto", COMPLETION)
    path = output / f"{NAME}_{version}_{where}.tar.gz"
    pack(folder, path, epoch)
    made = Archive(path, where, version, glibc_floor(folder))
    return [made, build_pure(work, site, output, version, epoch)]


def build_pure(work: Path, site: Path, output: Path, version: str, epoch: int) -> Archive:
    """The archive without anything native. Raises KrewError where something native would come along."""
    folder = work / "pure"
    folder.mkdir()
    krew_pure.lay_out(folder, site, TOOLS, COMPLETION)
    native = [name for name, data, _ in contents(folder) if data.startswith((b"\x7fELF", b"MZ", b"\xcf\xfa"))]
    if native:
        raise KrewError(
            f"the archive for other platforms would hold what runs on this one alone: {native[0]}"
        )
    path = output / f"{NAME}_{version}_any.tar.gz"
    pack(folder, path, epoch)
    return Archive(path, "any", version, "")


def manifest(template: str, archives: list[Archive]) -> str:
    """The manifest of these archives; raises KeyError where the template asks for another."""
    facts = {"VERSION": archives[0].version}
    for archive in archives:
        facts[f"SHA256_{archive.platform.upper()}"] = archive.sha256
        facts[f"GLIBC_{archive.platform.upper()}"] = archive.glibc
    body = template[template.index("apiVersion:") :]
    return Template(body).substitute(facts)


def main(argv: list[str] | None = None) -> int:
    """Build, and say what was written."""
    parser = argparse.ArgumentParser(description="Builds the krew archive and its manifest.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "krew", help="where both go")
    parser.add_argument("--constraint", type=Path, help="the requirements.txt of an archive to build again")
    arguments = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="pacto-krew-") as work:
            archives = build(Path(work), arguments.output.resolve(), arguments.constraint)
    except KrewError as error:
        print(f"krew: {error}", file=sys.stderr)
        return 1
    target = arguments.output / "plugin.yaml"
    target.write_text(manifest(TEMPLATE.read_text(), archives))
    for archive in archives:
        needs = f"glibc {archive.glibc}" if archive.glibc else "Python 3.11"
        print(f"{archive.path}: sha256 {archive.sha256}, needs {needs} or newer")
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
