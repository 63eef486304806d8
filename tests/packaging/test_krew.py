# SPDX-License-Identifier: MIT
"""The krew archive and its manifest: built twice, held against krew's rules, started, installed by krew."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import platform
import posixpath
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
import yaml

from kubectl_pacto import __version__
from scripts import krew, krew_entry
from tests.support.require import require, require_programs
from tests.support.sources import ROOT

pytestmark = pytest.mark.packaging

EPOCH: Final = 1_700_000_000
KREW: Final = "sigs.k8s.io/krew/cmd/{}@v0.4.3"
SAMPLE: Final = ROOT / "kubectl_pacto" / "cli" / "demo" / "manifests" / "payments.yaml"
# the pairs that krew's index knows
PAIRS: Final = {
    *(("windows", arch) for arch in ("386", "amd64", "arm64")),
    *(("linux", arch) for arch in ("386", "amd64", "arm", "arm64", "ppc64le")),
    *(("darwin", arch) for arch in ("386", "amd64", "arm64")),
}


def start(folder: Path) -> subprocess.Popen[str]:
    """The script, with a temporary folder of its own, as a person would start it."""
    folder.mkdir()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "TMPDIR": str(folder)}
    command = [sys.executable, str(ROOT / "scripts" / "krew.py"), "--output", str(folder / "out")]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for it."""
    said = process.communicate(timeout=600)[1]
    assert process.returncode == 0, said


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders, each with an archive and a manifest, built side by side in different places."""
    here = (sys.platform, platform.machine())
    require("packaging", "" if here in krew.PLATFORMS else f"krew archive: not for {' '.join(here)}")
    require("packaging", "" if (ROOT / ".git").exists() else "needs a checkout")
    require_programs("packaging", "git", "strip", "objdump")
    base = tmp_path_factory.mktemp("krew")
    folders = [base / "one", base / "another-and-longer"]
    with ThreadPoolExecutor() as pool:
        list(pool.map(finish, [start(folder) for folder in folders]))
    return [folder / "out" for folder in folders]


@pytest.fixture(scope="module")
def archive(built: list[Path]) -> Path:
    """The archive of this platform."""
    return next(built[0].glob("*_linux_amd64.tar.gz"))


@pytest.fixture(scope="module")
def pure(built: list[Path]) -> Path:
    """The archive of all others."""
    return next(built[0].glob("*_any.tar.gz"))


@pytest.fixture(scope="module")
def manifest(built: list[Path]) -> Any:
    """Its manifest, read."""
    return yaml.safe_load((built[0] / "plugin.yaml").read_text())


@pytest.fixture(scope="module")
def program(archive: Path, manifest: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked program behind a link elsewhere, as krew leaves it."""
    store, links = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("bin")
    subprocess.run(["tar", "-xzf", archive, "-C", store], check=True)
    link = links / "kubectl-pacto"
    link.symlink_to(store / manifest["spec"]["platforms"][0]["bin"])
    return link


def run(
    *command: str | Path,
    status: int = 0,
    cwd: Path = Path("/"),
    environment: Mapping[str, str] = MappingProxyType({}),
    complains: str = "",
) -> str:
    """Run with nothing in the environment but what is given; returns standard output."""
    done = subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, encoding="utf-8", check=False, timeout=300
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert complains in done.stderr
    return done.stdout


def frozen_modules(data: bytes) -> set[str]:
    """Names of the Python modules inside a PyInstaller program of this Python."""
    begin = data.index(b"PYZ\0" + importlib.util.MAGIC_NUMBER)
    offset = int.from_bytes(data[begin + 8 : begin + 12], "big")
    return {entry[0] for entry in marshal.loads(data[begin + offset :])}


def test_two_builds_give_the_same_bytes(built: list[Path]) -> None:
    one, other = built
    names = [sorted(path.name for path in folder.iterdir()) for folder in built]
    assert names[0] == names[1]
    for name in names[0]:
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("which", ["archive", "pure"])
def test_an_archive_is_what_krew_extracts(which: str, request: pytest.FixtureRequest) -> None:
    archive: Path = request.getfixturevalue(which)
    suffix = "linux_amd64" if which == "archive" else "any"
    assert archive.name == f"kubectl-pacto_{krew.semantic(__version__)}_{suffix}.tar.gz"
    assert archive.read_bytes()[4:8] == bytes(4)  # gzip says no time
    assert archive.stat().st_size < 16 * 2**20
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    names = [member.name for member in members]
    assert names == sorted(set(names))
    for member in members:
        assert member.type == tarfile.REGTYPE, member.name
        assert posixpath.normpath(member.name) == member.name
        assert ".." not in member.name
        assert not member.name.startswith("/")
        assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "root", "root")
        assert member.mtime == EPOCH
        assert member.mode in (0o644, 0o755)
    assert {"LICENSE", "NOTICE", "kubectl-pacto", "kubectl_complete-pacto"} <= set(names)


def test_an_archive_says_its_licences_and_versions(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        names = set(tar.getnames())
        texts = {name: tar.extractfile(name).read().decode() for name in ("LICENSE", "requirements.txt")}  # type: ignore[union-attr]
    assert texts["LICENSE"] == (ROOT / "LICENSE").read_text()
    assert f"CPython {platform.python_version()}" in texts["requirements.txt"]
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", texts["requirements.txt"], re.MULTILINE))
    assert {"click", "jsonschema", "pyinstaller", "rpds-py"} <= {name.lower() for name in pins}
    licensed = {name.split("/")[1] for name in names if name.startswith("licenses/")}
    inside = {"attrs", "click", "jsonschema", "pyinstaller", "python", "pyyaml", "rpds_py", "tabulate"}
    assert inside | {"LIBRARIES.txt"} <= licensed
    assert "NOTICE" in names


def test_an_archive_is_the_pure_plugin(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        data = tar.extractfile("kubectl-pacto").read()  # type: ignore[union-attr]
    modules = frozen_modules(data)
    assert {"kubectl_pacto.cli.main", "kubectl_pacto.cli.status_cmd", "jsonschema", "yaml"} <= modules
    roots = {name.partition(".")[0] for name in modules} | {
        re.split(r"[/.]", name)[1] for name in names if "/" in name
    }
    assert not roots & {*krew.LEFT_OUT, "pytest", "hypothesis", "PyInstaller"}
    assert not [name for name in names if name.endswith((".py", ".o")) or "bpf" in name]


def test_what_comes_along_is_stripped(program: Path) -> None:
    for path in program.resolve().parent.rglob("*"):
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            sections = subprocess.run(["objdump", "-h", path], check=True, capture_output=True, text=True)
            assert ".debug_info" not in sections.stdout, path.name


def test_the_program_starts_with_an_empty_environment(program: Path, tmp_path: Path) -> None:
    assert run(program, "--version") == f"kubectl pacto {__version__}\n"
    assert run(program, "status", "--help").startswith("Usage: kubectl pacto status")
    assert "DEPENDENCY_UNREACHABLE" in run(program, "explain")
    assert "kind: CustomResourceDefinition" in run(program, "install", "--dry-run=client", "-o", "yaml")
    # a contract goes through YAML's and jsonschema's native parts, a table through tabulate
    (tmp_path / "one.yaml").write_text(SAMPLE.read_text())
    words = ("evaluate", "-f", "one.yaml", "--fail-on", "never")
    assert re.search(r"^shop +payments ", run(program, *words, cwd=tmp_path), re.MULTILINE)
    (result,) = json.loads(run(program, *words, "-o", "json", cwd=tmp_path))
    assert (result["namespace"], result["name"]) == ("shop", "payments")


def test_every_command_of_the_plugin_is_inside(program: Path) -> None:
    from kubectl_pacto.cli.main import COMMANDS

    for name in COMMANDS:
        assert run(program, name, "--help").startswith(f"Usage: kubectl pacto {name}")
    run(program, "demo", status=1, complains="native parts")


@pytest.mark.parametrize("before", ["", "/opt/theirs"])
def test_a_credential_plugin_gets_its_own_libraries(program: Path, tmp_path: Path, before: str) -> None:
    seen = tmp_path / "seen"
    plugin = tmp_path / "credentials"
    plugin.write_text(f'#!/bin/sh\nprintf "%s" "$LD_LIBRARY_PATH" >{seen}\nexit 1\n')
    plugin.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "a", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    environment = {"KUBECONFIG": str(tmp_path / "config"), **({"LD_LIBRARY_PATH": before} if before else {})}
    run(program, "status", status=1, environment=environment)
    assert seen.read_text() == before


def test_the_entry_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.crt"
    bundle.touch()
    monkeypatch.setattr(krew_entry, "CERTIFICATES", (str(tmp_path / "absent"), str(bundle)))
    environment = {"LD_LIBRARY_PATH": "/folder:/a", "LD_LIBRARY_PATH_ORIG": "/a", "HOME": "/h"}
    krew_entry.settle(environment)
    assert environment == {"LD_LIBRARY_PATH": "/a", "HOME": "/h", "SSL_CERT_FILE": str(bundle)}
    theirs = {"SSL_CERT_DIR": "/theirs"}
    krew_entry.settle(theirs)
    assert theirs == {"SSL_CERT_DIR": "/theirs"}


def test_a_manifest_keeps_the_rules_of_the_index(manifest: Any, archive: Path, pure: Path) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == (
        "krew.googlecontainertools.github.com/v1alpha2",
        "Plugin",
    )
    assert manifest["metadata"] == {"name": "pacto"}
    spec = manifest["spec"]
    assert set(spec) == {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", spec["version"])
    assert spec["version"] == krew.semantic(__version__)
    assert "\n" not in spec["shortDescription"]
    assert len(spec["shortDescription"]) <= 50
    chosen: list[tuple[str, str]] = []
    for one in spec["platforms"]:
        assert set(one) == {"selector", "uri", "sha256", "bin"}
        assert set(one["selector"]) == {"matchLabels"}
        labels = one["selector"]["matchLabels"]
        assert set(labels) == {"os", "arch"}
        chosen.append((labels["os"], labels["arch"]))
        assert re.fullmatch(r"[a-f0-9]{64}", one["sha256"])
        assert posixpath.normpath(one["bin"]) == one["bin"]
    assert set(chosen) <= PAIRS
    assert len(chosen) == len(set(chosen))
    assert chosen == [("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")]
    for one, file in zip(spec["platforms"], (archive, pure, pure, pure), strict=True):
        assert one["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert one["uri"].endswith(f"/releases/download/{spec['version']}/{file.name}")
        with tarfile.open(file) as tar:
            assert tar.getmember(one["bin"]).mode == 0o755


def test_the_template_claims_no_digest() -> None:
    text = krew.TEMPLATE.read_text()
    assert not re.search(r"\b[0-9a-f]{64}\b", text)
    for one in yaml.safe_load(text)["spec"]["platforms"]:
        labels = one["selector"]["matchLabels"]
        where = f"{labels['os']}_{labels['arch']}"
        assert one["sha256"] == f"${{SHA256_{where if where == 'linux_amd64' else 'any'}}}".upper()


def test_a_template_with_a_platform_that_was_not_built_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    archive = krew.Archive(tmp_path / "a", "linux_arm64", "v1.0.0", "2.35")
    with pytest.raises(KeyError, match="AMD64"):
        krew.manifest(krew.TEMPLATE.read_text(), [archive])


@pytest.mark.parametrize(
    ("ours", "theirs"), [("1.2.3", "v1.2.3"), ("1.2.3rc4", "v1.2.3-rc.4"), ("0.1.0.dev2", "v0.1.0-dev.2")]
)
def test_a_version_is_semantic(ours: str, theirs: str) -> None:
    assert krew.semantic(ours) == theirs


def test_links_are_packed_as_the_files_that_they_mean(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b").write_bytes(b"text")
    (folder / "a").symlink_to("b")
    (folder / "c").hardlink_to(folder / "b")
    krew.pack(folder, tmp_path / "out" / "x.tar.gz", EPOCH)
    with tarfile.open(tmp_path / "out" / "x.tar.gz") as tar:
        assert [(one.name, one.type, one.size) for one in tar] == [
            (name, tarfile.REGTYPE, 4) for name in "abc"
        ]


def test_a_library_without_a_listed_licence_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "_internal").mkdir()
    (tmp_path / "_internal" / "libreadline.so.8").touch()
    with pytest.raises(krew.KrewError, match=r"libreadline\.so\.8"):
        krew.add_licences(tmp_path, tmp_path)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory, kubectl: Path) -> Path:
    """krew and the index's validator, compiled from their modules, and the real kubectl."""
    require_programs("packaging", "go")
    folder = tmp_path_factory.mktemp("tools")
    modules = [KREW.format(name) for name in ("krew", "validate-krew-manifest")]
    done = subprocess.run(
        ["go", "install", *modules],
        env={**os.environ, "GOBIN": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder / "kubectl-krew").symlink_to("krew")
    (folder / "kubectl").symlink_to(kubectl)
    return folder


@pytest.fixture
def served(built: list[Path]) -> Iterator[str]:
    """The address of a server on loopback that has the archive."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built[0]))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_the_validator_of_the_index_accepts_the_manifest(
    built: list[Path], tools: Path, served: str, tmp_path: Path
) -> None:
    text = (built[0] / "plugin.yaml").read_text()
    local = re.sub(r'(uri: ")\S*/', rf"\g<1>{served}", text)
    assert local.count(served) == 4
    (tmp_path / "pacto.yaml").write_text(local)  # the index names a file after its plugin
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    run(tools / "validate-krew-manifest", "-manifest", tmp_path / "pacto.yaml", environment=environment)


def krew_home(tools: Path, folder: Path) -> dict[str, str]:
    """The environment of somebody who has krew, and its folder on PATH."""
    search = f"{folder}/krew/bin:{tools}:{os.environ['PATH']}"
    return {"HOME": str(folder), "KREW_ROOT": str(folder / "krew"), "PATH": search}


def test_krew_installs_it_and_kubectl_runs_it(
    built: list[Path], archive: Path, tools: Path, tmp_path: Path
) -> None:
    home = krew_home(tools, tmp_path)
    words = (f"--manifest={built[0] / 'plugin.yaml'}", f"--archive={archive}")
    run("kubectl", "krew", "install", *words, environment=home)
    assert run("kubectl", "pacto", "--version", environment=home) == f"kubectl pacto {__version__}\n"
    assert run("kubectl", "pacto", "version", "--client", environment=home).startswith(
        f"plugin      {__version__}"
    )
    helped = run("kubectl", "pacto", "status", "--help", environment=home)
    assert helped.startswith("Usage: kubectl pacto status")


@pytest.mark.parametrize(("system", "arch"), [("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")])
def test_krew_installs_the_pure_archive_elsewhere(
    built: list[Path], pure: Path, tools: Path, tmp_path: Path, system: str, arch: str
) -> None:
    home = {**krew_home(tools, tmp_path), "KREW_OS": system, "KREW_ARCH": arch}
    words = (f"--manifest={built[0] / 'plugin.yaml'}", f"--archive={pure}")
    run("kubectl", "krew", "install", *words, environment=home)
    assert run("kubectl", "pacto", "version", "--client", environment=home).startswith(
        f"plugin      {__version__}"
    )


@pytest.fixture(scope="module")
def scattered(pure: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked pure archive's program, behind a link."""
    store, links = tmp_path_factory.mktemp("pure"), tmp_path_factory.mktemp("pure-bin")
    subprocess.run(["tar", "-xzf", pure, "-C", store], check=True)
    (links / "kubectl-pacto").symlink_to(store / "kubectl-pacto")
    return links / "kubectl-pacto"


def test_the_pure_archive_needs_python_and_nothing_installed(scattered: Path, tmp_path: Path) -> None:
    start = (sys.executable, "-I", "-S", scattered)
    assert run(*start, "--version") == f"kubectl pacto {__version__}\n"
    (tmp_path / "one.yaml").write_text(SAMPLE.read_text())
    words = ("evaluate", "-f", "one.yaml", "--fail-on", "never", "-o", "json")
    (result,) = json.loads(run(*start, *words, cwd=tmp_path))
    assert (result["namespace"], result["name"]) == ("shop", "payments")
    assert "<title>" in run(*start, "report", "-f", "one.yaml", cwd=tmp_path)
    assert "kind: CustomResourceDefinition" in run(*start, "install", "--dry-run=client", "-o", "yaml")
    run(*start, "demo", status=1, complains="native parts")


def test_both_archives_judge_alike(program: Path, scattered: Path, tmp_path: Path) -> None:
    """One has compiled YAML and rpds, the other our stand-ins."""
    folder = SAMPLE.parent
    words = (
        "evaluate",
        "-f",
        str(folder),
        "--at",
        "2026-10-18T09:12:44Z",
        "-o",
        "json",
        "--fail-on",
        "never",
    )
    assert run(sys.executable, "-I", "-S", scattered, *words) == run(program, *words)


def test_the_pure_archive_says_which_python_it_needs(scattered: Path) -> None:
    pretend = (
        "import sys; sys.version_info = (3, 9); exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'))"
    )
    run(
        sys.executable,
        "-c",
        pretend,
        scattered,
        status=1,
        complains="error: kubectl pacto needs Python 3.11 or newer",
    )


def test_completion_of_a_krew_installation_works_through_kubectl(
    built: list[Path], archive: Path, tools: Path, tmp_path: Path
) -> None:
    home = krew_home(tools, tmp_path)
    words = (f"--manifest={built[0] / 'plugin.yaml'}", f"--archive={archive}")
    run("kubectl", "krew", "install", *words, environment=home)
    run("kubectl", "pacto", "completion", "--install", tmp_path / "krew" / "bin", environment=home)
    found = run("kubectl", "__complete", "pacto", "cov", environment=home)
    assert found == "coverage\tHow much of each node and pod the kernel's view covers.\n:4\n"


def test_krew_refuses_an_archive_that_was_changed(
    built: list[Path], archive: Path, tools: Path, tmp_path: Path
) -> None:
    (tmp_path / archive.name).write_bytes(archive.read_bytes() + b"\0")
    words = (f"--manifest={built[0] / 'plugin.yaml'}", f"--archive={tmp_path / archive.name}")
    home = krew_home(tools, tmp_path)
    run(tools / "krew", "install", *words, status=1, environment=home, complains="checksum does not match")


def test_krew_refuses_the_unfilled_template(archive: Path, tools: Path, tmp_path: Path) -> None:
    words = (f"--manifest={krew.TEMPLATE}", f"--archive={archive}")
    home = krew_home(tools, tmp_path)
    run(tools / "krew", "install", *words, status=1, environment=home, complains="not starting with 'v'")
