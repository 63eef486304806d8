# SPDX-License-Identifier: MIT
"""Every file of a release is for the machine that its name says: one byte of an ELF header names its file."""

from __future__ import annotations

import base64
import hashlib
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from kubectl_pacto import __version__
from scripts import release, release_verify
from tests.images import oci

pytestmark = pytest.mark.packaging
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
NUMBERS = {"amd64": 62, "arm64": 183, "bpf": 247, "s390x": 22}
READER = "pacto_native/ring.abi3.so"


def elf(machine: str) -> bytes:
    """The head of an ELF file, of 64 bits and little-endian, for a machine."""
    return b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + NUMBERS[machine].to_bytes(2, "little") + b"rest" * 9


def image(folder: Path, name: str, architecture: str, files: dict[str, bytes]) -> None:
    """An image whose configuration names an architecture, with one layer of these files."""
    layer = folder.parent / f"layer-{len(list(folder.parent.iterdir()))}.tar"
    with tarfile.open(layer, "w") as tar:
        for path, data in files.items():
            oci.add_bytes(tar, path, data)
    made = oci.Image("localhost/x:1", (oci.Layer.of(layer),), architecture=architecture)
    oci.write(folder / image_name(name), [made])


def image_name(architecture: str) -> str:
    """An image's file."""
    return f"pacto-{__version__}-{architecture}{'-untested' * (architecture == 'arm64')}.oci.tar"


def wheel_name(architecture: str) -> str:
    """A native wheel's file."""
    return f"kubectl_pacto-{__version__}-cp311-abi3-manylinux_2_34_{MACHINES[architecture]}.whl"


def bill_name(architecture: str) -> str:
    """A bill's file."""
    return f"kubectl-pacto-{__version__}-{architecture}.cdx.json"


def wheel(folder: Path, architecture: str, files: dict[str, bytes]) -> None:
    """A native wheel of these files, with a RECORD that is right, and the bill that describes it."""
    record, path = f"kubectl_pacto-{__version__}.dist-info/RECORD", folder / wheel_name(architecture)
    with zipfile.ZipFile(path, "w") as archive:
        rows = []
        for name, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            archive.writestr(name, data)
        archive.writestr(record, "".join([*rows, f"{record},,\n"]))
    bill(folder, architecture, path)


def bill(folder: Path, architecture: str, described: Path) -> None:
    """A bill of materials that describes one wheel."""
    text = json.dumps({"bomFormat": "CycloneDX", "components": [release._file(described)]})
    (folder / bill_name(architecture)).write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release of both architectures: wheels, images, bills."""
    made = tmp_path / "release"
    made.mkdir()
    for one in MACHINES:
        wheel(made, one, {READER: elf(one), "pacto_agent/flow.bpf.o": elf("bpf"), "a.py": b"x = 1\n"})
        image(made, one, one, {"usr/bin/python3": elf(one), "flow.bpf.o": elf("bpf"), "etc/motd": b"hello\n"})
    return made


def told(folder: Path) -> list[str]:
    """What verification says of it as it is now."""
    release_verify.write_sums(folder)
    return release_verify.problems(folder)


def test_both_architectures_hold_together(folder: Path) -> None:
    assert told(folder) == []


@pytest.mark.parametrize("architecture", MACHINES)
@pytest.mark.parametrize("other", ["amd64", "arm64", "s390x"])
def test_a_module_for_another_machine_is_named(folder: Path, architecture: str, other: str) -> None:
    wheel(folder, architecture, {READER: elf(architecture), "libs/libelf.so": elf(other)})
    name, found = wheel_name(architecture), told(folder)
    if other == architecture:
        assert found == []
    else:
        (line,) = found
        assert line.startswith(f"{name}: libs/libelf.so is for machine {NUMBERS[other]}, and the name")


def test_a_native_wheel_without_a_module_for_its_machine_is_told(folder: Path) -> None:
    wheel(folder, "arm64", {"pacto_agent/flow.bpf.o": elf("bpf"), "a.py": b"x = 1\n"})
    (line,) = told(folder)
    assert line == f"{wheel_name('arm64')}: nothing in it is for manylinux_2_34_aarch64"


def test_a_pure_wheel_with_a_module_is_told(folder: Path) -> None:
    wheel(folder, "amd64", {READER: elf("amd64")})
    pure = f"kubectl_pacto-{__version__}-py3-none-any.whl"
    (folder / wheel_name("amd64")).rename(folder / pure)
    bill(folder, "amd64", folder / pure)
    assert told(folder) == [f"{pure}: {READER} is for machine 62, and the name of the wheel says any"]


@pytest.mark.parametrize(("name", "says"), [("amd64", "arm64"), ("arm64", "amd64"), ("arm64", "")])
def test_an_image_whose_configuration_is_for_another_machine_is_told(
    folder: Path, name: str, says: str
) -> None:
    image(folder, name, says, {"usr/bin/python3": elf(name)})
    (line,) = told(folder)
    assert line == f"{image_name(name)}: its configuration is for {says}, and its name says {name}"


@pytest.mark.parametrize(("name", "other"), [("amd64", "arm64"), ("arm64", "amd64"), ("arm64", "s390x")])
def test_an_image_with_a_program_for_another_machine_is_told(folder: Path, name: str, other: str) -> None:
    image(folder, name, name, {"usr/bin/python3": elf(name), "usr/lib/x.so": elf(other)})
    (line,) = told(folder)
    assert line.startswith(f"{image_name(name)}: usr/lib/x.so in it is for machine {NUMBERS[other]}, and")


def test_an_image_whose_name_says_no_architecture_is_told(folder: Path) -> None:
    (folder / image_name("amd64")).rename(folder / "pacto.oci.tar")
    assert any(line.endswith("its name says nothing") for line in told(folder))


def test_a_bill_that_describes_the_wheel_of_another_machine_is_told(folder: Path) -> None:
    bill(folder, "amd64", folder / wheel_name("arm64"))
    found = told(folder)
    name = wheel_name("arm64")
    assert f"{bill_name('amd64')}: describes {name}, which is for another machine" in found
    assert f"{wheel_name('amd64')}: no bill of materials describes it" in found
