# SPDX-License-Identifier: MIT
"""Each record of bpf/*.h is written once: C, Cython, the BPF object and its readers agree on it."""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
from pathlib import Path

import pytest

from kubectl_pacto.model import bounds
from pacto_agent import iterators, objectfile
from pacto_native import reference, ring, rows
from tests.support.btf import layouts, section
from tests.support.require import require, require_programs

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "agent" / "pacto_agent"
# a struct, its header's stem (also the object's), and the format string of its Python reader
STRUCTS = {
    "pacto_flow": ("flow", reference.FLOW),
    "pacto_spill_key": ("flow", reference.SPILL_KEY),
    "pacto_spill": ("flow", reference.SPILL),
    "pacto_lost": ("flow", struct.Struct("=32sQ")),
    "pacto_process_row": ("iter", iterators.PROCESS),
    "pacto_socket_row": ("iter", iterators.SOCKET),
}
CONSTANTS = {
    "PACTO_LISTEN": rows.LISTEN,
    "PACTO_UNLISTEN": rows.UNLISTEN,
    "PACTO_CONNECTED": rows.CONNECTED,
    "PACTO_FAILED": rows.FAILED,
    "PACTO_KINDS": rows.KINDS,
    "PACTO_REASON_ABORTED": rows.REASON_ABORTED,
    "PACTO_REASONS": len(rows.REASONS),
    "PACTO_V6ONLY": rows.V6ONLY,
    "PACTO_MPTCP": rows.MPTCP,
    "PACTO_TABLE_ENTRIES": rows.TABLE_ENTRIES,
    "PACTO_LOG_ENTRIES": rows.LOG_ENTRIES,
    "PACTO_ORIGINS": rows.ORIGINS,
    "PACTO_ORIGIN_PEERS": rows.ORIGIN_PEERS,
    "PACTO_ORIGIN_SPILLED": rows.ORIGIN_SPILLED,
    "PACTO_SPILL_HEAD": rows.SPILL_HEAD,
    "PACTO_RING_BYTES": bounds.RING_BYTES,
    "PACTO_WAKE_BYTES": bounds.WAKE_BYTES,
    "PACTO_SPILL_ENTRIES": bounds.SPILL_ENTRIES,
}


def built(stem: str) -> Path:
    """The compiled object of a program."""
    path = OBJECTS / f"{stem}.bpf.o"
    require("native", "" if path.exists() else f"{path} is not built (make build)")
    return path


def members(name: str) -> list[str]:
    """The names of a struct's members, in the order of the header."""
    header = (ROOT / "bpf" / f"{STRUCTS[name][0]}.h").read_text()
    body = re.search(rf"struct {name} {{\n(.*?)\n}};", header, re.DOTALL)
    assert body
    return re.findall(r"^\t__u\d+ (\w+)", body[1], re.MULTILINE)


def format_offsets(name: str) -> dict[str, int]:
    """Where the twin's format string puts each member."""
    items = re.findall(r"\d*[A-Za-z]", STRUCTS[name][1].format[1:])
    items = [item if item.endswith("s") else letter for item in items for letter in expand(item)]
    starts = itertools.accumulate((struct.calcsize("=" + item) for item in items), initial=0)
    return dict(zip(members(name), starts, strict=False))


def expand(item: str) -> str:
    """One letter per value: `16s` is one value, `2I` are two."""
    return item[-1] if item.endswith("s") or len(item) == 1 else item[-1] * int(item[:-1])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Sizes, offsets and constants as the C compiler sees them."""
    require_programs("native", "cc")
    folder = tmp_path_factory.mktemp("layout")
    wanted = {name: name for name in CONSTANTS}
    for name in STRUCTS:
        wanted[name] = f"sizeof(struct {name})"
        wanted |= {f"{name}.{one}": f"offsetof(struct {name}, {one})" for one in members(name)}
    prints = "\n".join(f'printf("{label} %zu\\n", (size_t)({term}));' for label, term in wanted.items())
    source = folder / "layout.c"
    source.write_text(
        f'#include <stdio.h>\n#include "flow_reader.h"\n#include "iter.h"\nint main(void)\n{{\n{prints}\n}}\n'
    )
    includes = [f"-I{ROOT / 'bpf'}", f"-I{ROOT / 'ext' / 'src'}"]
    program = folder / "layout"
    subprocess.run(["cc", "-Wall", "-Werror", *includes, source, "-o", program], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {label: int(value) for label, value in (line.split() for line in lines)}


@pytest.mark.parametrize("name", STRUCTS)
def test_the_twins_format_matches_the_header(name: str, compiled: dict[str, int]) -> None:
    assert STRUCTS[name][1].size == compiled[name]
    assert format_offsets(name) == {one: compiled[f"{name}.{one}"] for one in members(name)}


@pytest.mark.parametrize("name", STRUCTS)
def test_the_objects_btf_matches_the_header(name: str, compiled: dict[str, int]) -> None:
    size, offsets = layouts(built(STRUCTS[name][0]))[name]
    assert size == compiled[name]
    assert offsets == {one: compiled[f"{name}.{one}"] for one in members(name)}


def test_cython_sees_the_same_sizes(compiled: dict[str, int]) -> None:
    sizes = (ring.FLOW_BYTES, ring.SPILL_KEY_BYTES, ring.SPILL_BYTES)
    assert sizes == (compiled["pacto_flow"], compiled["pacto_spill_key"], compiled["pacto_spill"])


def test_python_has_the_headers_constants(compiled: dict[str, int]) -> None:
    assert {name: compiled[name] for name in CONSTANTS} == CONSTANTS


@pytest.mark.parametrize("stem", ["flow", "iter"])
def test_an_object_says_its_licence_and_is_stripped(stem: str) -> None:
    path = built(stem)
    assert section(path, "license") == b"Dual MIT/GPL\0"
    with pytest.raises(LookupError):
        section(path, ".debug_info")
    assert path.stat().st_size < 32 << 10


def test_the_agents_own_reader_of_objects_sees_the_same_layouts() -> None:
    for shape in (objectfile.FLOW, objectfile.ITERATORS):
        path = built(shape.name.partition(".")[0])
        found = layouts(path)
        sizes = {name: STRUCTS[name][1].size for name in shape.records}
        read = objectfile.inspect_object(path.read_bytes(), shape=shape, sizes=sizes).records
        for name in shape.records:
            told = read[name].size, {one.name: one.offset for one in read[name].members}
            assert told == found[name]


@pytest.mark.parametrize("page", [4 << 10, 16 << 10, 64 << 10])
def test_the_ring_is_a_power_of_two_of_whole_pages_on_every_machine(
    page: int, compiled: dict[str, int]
) -> None:
    size = compiled["PACTO_RING_BYTES"]
    assert size % page == 0
    assert size & (size - 1) == 0
