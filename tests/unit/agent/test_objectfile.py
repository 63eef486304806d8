# SPDX-License-Identifier: MIT
"""The built object is checked before the kernel sees it: no bytes whatever give a traceback."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_pacto.errors import MissingNativeParts, ObjectRejected
from pacto_agent import objectfile
from pacto_agent.objectfile import FLOW, ITERATORS, Shape, checked_image, inspect_object, packaged_image

SHAPES = [pytest.param(shape, id=shape.name) for shape in (FLOW, ITERATORS)]
CUTS = 400


def image_of(shape: Shape) -> bytes:
    """The packaged object; these tests are skipped where it was not built."""
    try:
        return packaged_image(shape)
    except MissingNativeParts as error:
        pytest.skip(f"native: {error}")


def accepted(image: bytes, shape: Shape) -> bool:
    """Whether an image passes; anything but ObjectRejected is a failure of the test."""
    try:
        inspect_object(image, shape=shape)
    except ObjectRejected:
        return False
    return True


@pytest.mark.parametrize("shape", SHAPES)
def test_the_packaged_object_holds_what_the_agent_needs(shape: Shape) -> None:
    found = inspect_object(image_of(shape), shape=shape)
    assert set(found.programs) >= set(shape.sections)
    assert found.licence == "Dual MIT/GPL"
    assert found.records.keys() >= set(shape.records)


def test_the_packaged_objects_maps_are_the_programs() -> None:
    assert inspect_object(image_of(FLOW)).maps == ("flows", "flows_lost", "flows_spilled")


@pytest.mark.parametrize("shape", SHAPES)
def test_an_object_cut_anywhere_is_rejected(shape: Shape) -> None:
    image = image_of(shape)
    cuts = sorted({*range(200), *random.Random(7).sample(range(len(image) - 64), CUTS)})
    assert [cut for cut in cuts if accepted(image[:cut], shape)] == []


@pytest.mark.parametrize("shape", SHAPES)
def test_an_object_damaged_anywhere_is_rejected_or_still_whole_enough(shape: Shape) -> None:
    image, numbers = image_of(shape), random.Random(11)
    for _ in range(CUTS):
        damaged = bytearray(image)
        for _ in range(numbers.randrange(1, 8)):
            damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
        accepted(bytes(damaged), shape)


def test_a_damaged_header_is_rejected_whatever_is_in_it() -> None:
    image = image_of(FLOW)
    for at in range(64):
        for value in (0, 1, 0x7F, 0xFF):
            accepted(image[:at] + bytes([value]) + image[at + 1 :], FLOW)


@given(st.binary(max_size=300))
def test_no_bytes_are_an_object(raw: bytes) -> None:
    assert not accepted(raw, FLOW)
    assert not accepted(b"\x7fELF\x02\x01\x01" + raw, FLOW)


def test_another_machines_object_is_named() -> None:
    image = bytearray(image_of(FLOW))
    image[18:20] = (62).to_bytes(2, "little")
    with pytest.raises(ObjectRejected, match="its machine is EM_X86_64, not BPF"):
        inspect_object(bytes(image))


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (b".BTF\0", "it has no BTF section: it was stripped too far"),
        (b"tp_btf/inet_sock_set_state\0", "it has no program for tp_btf/inet_sock_set_state"),
    ],
)
def test_a_missing_section_is_named(section: bytes, problem: str) -> None:
    image = image_of(FLOW)
    assert section in image
    renamed = image.replace(section, b"?" * (len(section) - 1) + b"\0")
    with pytest.raises(ObjectRejected, match=problem):
        inspect_object(renamed)


def test_the_other_object_of_this_package_is_not_the_one() -> None:
    with pytest.raises(ObjectRejected, match="it has no program for"):
        inspect_object(image_of(ITERATORS), shape=FLOW)


def test_a_record_of_another_size_is_refused_with_both_sizes() -> None:
    image = image_of(FLOW)
    inspect_object(image, sizes={objectfile.RECORD: 48})
    with pytest.raises(ObjectRejected, match=r"pacto_flow has 48 bytes, the reader's 40: rebuild both"):
        inspect_object(image, sizes={objectfile.RECORD: 40})


def test_an_installation_without_the_object_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingNativeParts, match=r"no-such\.bpf\.o"):
        packaged_image(Shape("no-such.bpf.o", (), ()))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_agent_checks_its_object_and_holds_no_parser(shape: Shape) -> None:
    image = image_of(shape)
    program = (
        "import sys; from pacto_agent import objectfile;"
        f"image = objectfile.checked_image(objectfile.{'FLOW' if shape is FLOW else 'ITERATORS'}, {{}});"
        "print(len(image), *(name for name in sys.modules if name.startswith('elftools')))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == ([str(len(image))], "")


def test_the_check_of_a_child_says_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    image_of(FLOW)
    monkeypatch.setattr(objectfile, "problem_of", lambda *_: pytest.fail("the child has the answer"))
    assert checked_image(FLOW, {objectfile.RECORD: 48}) == image_of(FLOW)
    with pytest.raises(ObjectRejected, match=r"flow.bpf.o: .*pacto_flow has 48 bytes, the reader's 40"):
        checked_image(FLOW, {objectfile.RECORD: 40})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHECK", "import os; os.kill(os.getpid(), 9)"),
        ("CHECK", "print('fits', end=''); raise SystemExit(1)"),
        ("CHECK", "raise ImportError"),
        ("sys.executable", "/no/such/python"),
        ("sys.executable", ""),
    ],
)
def test_a_child_without_an_answer_leaves_the_check_to_the_agent(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    image_of(FLOW)
    monkeypatch.setattr(f"pacto_agent.objectfile.{name}", value)
    assert checked_image(FLOW, {objectfile.RECORD: 48}) == image_of(FLOW)
    with pytest.raises(ObjectRejected, match=r"pacto_flow has 48 bytes, the reader's 40"):
        checked_image(FLOW, {objectfile.RECORD: 40})


def test_a_check_leaves_no_process_and_no_descriptor() -> None:
    image_of(FLOW)

    def held() -> tuple[int, str]:
        return len(list(Path("/proc/self/fd").iterdir())), Path(
            "/proc/self/task", str(os.getpid()), "children"
        ).read_text()

    before = held()
    checked_image(FLOW, {})
    assert held() == before
