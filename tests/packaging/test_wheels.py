# SPDX-License-Identifier: MIT
"""sdist -> wheel -> fresh environment, with native parts and without, and an editable install."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kubectl_pacto import __version__
from tests.packaging.conftest import Venv, fresh, members
from tests.support.require import require
from tests.support.sources import PACKAGES, ROOT, files

pytestmark = pytest.mark.packaging

NATIVE_MODULES = ("ring", "procnet", "procfs", "_libbpf")
BUILT = re.compile(r"\.(so|o|c|h|pyx|pxd|pyc)$")
# files that a source distribution may lack
UNNEEDED = re.compile(r"^(\.|tests/|docs/|scripts/|changes/|Makefile|CHANGELOG|CONTRIBUTING)")


@pytest.fixture(scope="module")
def installed(native_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """The native wheel in a fresh environment."""
    one = fresh(tmp_path_factory.mktemp("venv") / "native")
    one.install(str(native_wheel))
    return one


@pytest.fixture(scope="module")
def pure(pure_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """The pure wheel in a fresh environment."""
    one = fresh(tmp_path_factory.mktemp("venv") / "pure")
    one.install(str(pure_wheel))
    return one


def package_files(*suffixes: str) -> set[str]:
    """Files of the packages as a wheel names them."""
    return {
        name.removeprefix(f"{source}/")
        for package, source in PACKAGES.items()
        for name in files(*suffixes)
        if name.removeprefix(f"{source}/").startswith(f"{package}/")
    }


def test_an_sdist_has_every_source_and_nothing_built(unpacked: Path) -> None:
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    wanted = {name for name in files("") if not UNNEEDED.search(name)}
    assert wanted - names == set()
    assert not [name for name in names if name.endswith((".so", ".o", "_libbpf.c", ".pyc"))]


def test_an_sdist_makes_an_sdist_again(unpacked: Path) -> None:
    assert (unpacked / "setup.py").exists()
    assert (unpacked / "PKG-INFO").read_text().count(f"Version: {__version__}") == 1


def test_a_native_wheel_has_modules_objects_and_data(native_wheel: Path) -> None:
    names = members(native_wheel)
    assert "linux" in native_wheel.name
    assert {f"pacto_native/{name}.abi3.so" for name in NATIVE_MODULES} <= names
    objects = {f"pacto_agent/{path.name.removesuffix('.c')}.o" for path in ROOT.glob("bpf/*.bpf.c")}
    assert objects <= names
    assert package_files(".py", ".pyi", ".yaml", ".json", "py.typed") <= names
    allowed = ({one for one in names if one.endswith(".so")} | objects) & names
    assert not [name for name in names - allowed if BUILT.search(name)]


def test_a_native_wheel_serves_every_later_python(native_wheel: Path) -> None:
    """Its name says so, and its modules ask Python for nothing outside the stable ABI of 3.11."""
    assert "-cp311-abi3-" in native_wheel.name
    require("packaging", "" if find_spec("abi3audit") else "not installed: abi3audit (pip)")
    command = [sys.executable, "-m", "abi3audit", "--strict", "--report", str(native_wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = json.loads(done.stdout)["specs"].values()
    assert len(told["wheel"]) == len(NATIVE_MODULES)


def test_a_native_wheel_needs_no_libbpf_of_the_system(native_wheel: Path, tmp_path: Path) -> None:
    require("packaging", "" if shutil.which("readelf") else "not on PATH: readelf")
    shutil.unpack_archive(native_wheel, tmp_path, "zip")
    module = tmp_path / "pacto_native" / "_libbpf.abi3.so"
    dynamic = subprocess.run(["readelf", "-dW", module], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(\S+?)\.so", dynamic))
    assert needed <= {"libelf", "libz", "libc", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", module], check=True, capture_output=True, text=True
    )
    exported = re.findall(r"GLOBAL +DEFAULT +\d+ (\S+)", symbols.stdout)
    assert exported == ["PyInit__libbpf"]


def test_native_modules_bring_no_debugging_information(native_wheel: Path, tmp_path: Path) -> None:
    require("packaging", "" if shutil.which("readelf") else "not on PATH: readelf")
    shutil.unpack_archive(native_wheel, tmp_path, "zip")
    modules = list(tmp_path.glob("pacto_native/*.so"))
    assert len(modules) == len(NATIVE_MODULES)
    for module in modules:
        sections = subprocess.run(
            ["readelf", "-SW", module], check=True, capture_output=True, text=True
        ).stdout
        assert ".text" in sections
        assert ".debug_" not in sections, module.name


def test_a_pure_wheel_has_nothing_built(pure_wheel: Path) -> None:
    names = members(pure_wheel)
    assert pure_wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in names if BUILT.search(name)]
    assert package_files(".py", ".pyi", ".yaml", ".json", "py.typed") <= names


@pytest.mark.parametrize("kind", ["installed", "pure"])
def test_an_installation_answers(kind: str, request: pytest.FixtureRequest) -> None:
    one: Venv = request.getfixturevalue(kind)
    assert __version__ in one.run("kubectl-pacto", "--version")
    assert __version__ in one.run("python", "-m", "kubectl_pacto", "--version")
    assert "agent" in one.run("pacto", "--help")
    assert "evaluate" in one.run("kubectl-pacto", "--help")
    assert not one.run("python", "-m", "pip", "check").replace("No broken requirements found.\n", "")


def test_an_installation_has_working_native_parts(installed: Venv) -> None:
    for module in NATIVE_MODULES:
        installed.run("python", "-W", "error", "-c", f"import pacto_native.{module}")
    script = (
        "from pacto_native import _libbpf, procnet, ring; "
        "print(_libbpf.ffi.string(_libbpf.lib.libbpf_version_string()).decode(), ring.FLOW_BYTES, "
        "procnet.scan_sockets(open('/proc/net/tcp', 'rb').read())[1])"
    )
    assert re.fullmatch(r"v\d+\.\d+ 48 0\n", installed.run("python", "-c", script))
    assert "usage" in installed.run("pacto", "agent", "--help").lower()


def test_a_pure_installation_says_what_the_agent_lacks(pure: Venv) -> None:
    said = pure.run("pacto", "agent", "--sink", "stdout", status=1)
    assert "no native parts" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("pure_build", ["0", "1"])
def test_an_editable_install_works(unpacked: Path, tmp_path: Path, pure_build: str) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(unpacked, copy)
    one = fresh(tmp_path / "venv")
    one.install("--editable", str(copy), PACTO_PURE=pure_build)
    assert __version__ in one.run("kubectl-pacto", "--version")
    assert str(copy) in one.run("python", "-c", "import kubectl_pacto; print(kubectl_pacto.__file__)")
    assert (copy / "agent" / "pacto_agent" / "flow.bpf.o").exists() == (pure_build == "0")
    one.run("python", "-c", "import pacto_native.ring", status=int(pure_build))


@pytest.mark.parametrize("kind", ["native_wheel", "pure_wheel"])
def test_kubectl_runs_and_completes_what_pipx_installs(
    kind: str, request: pytest.FixtureRequest, kubectl: Path, tmp_path: Path
) -> None:
    wheel: Path = request.getfixturevalue(kind)
    folder = tmp_path / "bin"
    home = {
        "HOME": str(tmp_path), "PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(folder),
        "PIPX_DEFAULT_PYTHON": sys.executable, "PATH": f"{folder}:/usr/bin:/bin",
    }  # fmt: skip
    settings = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            command, env={**settings, **home}, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "pipx", "install", "--quiet", wheel)
    assert {path.name for path in folder.iterdir()} == {"kubectl-pacto", "kubectl_complete-pacto", "pacto"}
    assert run(kubectl, "pacto", "--version") == f"kubectl pacto {__version__}\n"
    assert run(kubectl, "pacto", "version", "--client").startswith(f"plugin      {__version__}")
    assert str(folder / "kubectl-pacto") in run(kubectl, "plugin", "list")
    # the script beside the plugin is all that kubectl's own completion needs
    assert run(kubectl, "__complete", "pacto", "cov").splitlines() == [
        "coverage\tHow much of each node and pod the kernel's view covers.", ":4",
    ]  # fmt: skip
    assert run(kubectl, "__complete", "pacto", "status", "-o", "").splitlines() == [
        "table", "wide", "json", "yaml", "name", ":4",
    ]  # fmt: skip
    assert "--all-namespaces\tLook in all namespaces\n" in run(kubectl, "__complete", "pacto", "status", "--")
