# SPDX-License-Identifier: MIT
"""What the built BPF object holds, read with pyelftools before libbpf sees it.

Called by the tracer and the iterators before they load, and by `pacto agent inspect`. An object that
does not fit this agent's reader is refused here, with words; the kernel would take it and the numbers
be wrong. An agent asks a child process: pyelftools would stay with it, 2.5 MiB, for as long as it lives.
"""

from __future__ import annotations

import io
import json
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import kubectl_pacto
import pacto_agent
from kubectl_pacto.errors import MissingNativeParts, ObjectRejected

RECORD: Final = "pacto_flow"
PROGRAM_SECTION: Final = "tp_btf/inet_sock_set_state"
FITS: Final = "fits"
# what the child runs; it takes a quarter of a second of CPU, and never more than a minute of time
CHECK: Final = """
import json, signal, sys
signal.alarm(60)
sys.path[:], name, sections, records, sizes = json.loads(sys.argv[1])
from pacto_agent.objectfile import Shape, packaged_image, problem_of
shape = Shape(name, tuple(sections), tuple(records))
print(problem_of(packaged_image(shape), shape, sizes), end="")
"""
PROCESS_RECORD: Final = "pacto_process_row"
SOCKET_RECORD: Final = "pacto_socket_row"

_BTF_HEADER = struct.Struct("<HBBIIIII")
_BTF_MAGIC = 0xEB9F
_KIND_STRUCT = 4
# bytes that follow a type, by kind: (once, per member)
_BTF_EXTRA = {
    1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8),
    13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12),
}  # fmt: skip
_BTF_KINDS = 19


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a record: its name and offset in bytes."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Record:
    """The layout of one record: its size in bytes and its members."""

    size: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What an object of this package must hold: programs by section, records by name."""

    name: str
    sections: tuple[str, ...]
    records: tuple[str, ...]


FLOW: Final = Shape("flow.bpf.o", (PROGRAM_SECTION,), (RECORD,))
ITERATORS: Final = Shape("iter.bpf.o", ("iter/task", "iter/task_file"), (PROCESS_RECORD, SOCKET_RECORD))


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A BPF object: its programs by section, maps, licence, and the layouts of its records."""

    image: bytes
    programs: tuple[str, ...]
    maps: tuple[str, ...]
    licence: str
    records: Mapping[str, Record]


def packaged_image(shape: Shape = FLOW) -> bytes:
    """The object that this package was built with; raises MissingNativeParts."""
    # beside this file, as native parts are: importlib.resources would cost 2 MiB of imports
    try:
        with open(os.path.join(os.path.dirname(__file__), shape.name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise MissingNativeParts(missing=shape.name) from None


def checked_image(shape: Shape, sizes: Mapping[str, int]) -> bytes:
    """The packaged object, which holds what `shape` names and records of `sizes`.

    Raises MissingNativeParts, and ObjectRejected naming what does not fit.
    """
    image = packaged_image(shape)
    # a child that has no answer, as one that may not be started, leaves the check to this process
    said = _asked_of_a_child(shape, sizes) or problem_of(image, shape, sizes)
    if said != FITS:
        raise ObjectRejected(path=shape.name, problem=said)
    return image


def problem_of(image: bytes, shape: Shape, sizes: Mapping[str, int]) -> str:
    """What does not fit in one line, or FITS."""
    try:
        inspect_object(image, shape=shape, sizes=sizes)
    except ObjectRejected as error:
        return str(error.facts["problem"])
    return FITS


def _asked_of_a_child(shape: Shape, sizes: Mapping[str, int]) -> str:
    """problem_of() as another Python says it, empty where that comes to no answer.

    It finds its modules where this process found them. A new program, no fork: a thread may run here.
    """
    roots = [
        os.path.dirname(os.path.dirname(os.path.abspath(str(one.__file__))))
        for one in (kubectl_pacto, pacto_agent)
    ]
    asked = json.dumps([[*roots, *sys.path], shape.name, shape.sections, shape.records, dict(sizes)])
    reading, writing = os.pipe()
    try:
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", CHECK, asked],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except (OSError, ValueError, TypeError):  # the last two: Python does not know where its own program is
        os.close(reading)
        return ""
    finally:
        os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as answer:
        said = answer.read()
    return said if os.waitpid(child, 0)[1] == 0 else ""


def inspect_object(
    image: bytes, *, shape: Shape = FLOW, path: str = "", sizes: Mapping[str, int] | None = None
) -> ObjectFile:
    """Parse and check `image`; `sizes` are those of the records that the reader was made for.

    Raises ObjectRejected naming what does not fit.
    """
    from elftools.elf.elffile import ELFFile  # type: ignore[import-untyped,unused-ignore]

    path = path or shape.name
    try:
        elf = ELFFile(io.BytesIO(image))
        if elf["e_machine"] != "EM_BPF":
            raise ObjectRejected(path=path, problem=f"its machine is {elf['e_machine']}, not BPF")
        found = _read(elf, image, path)
    except ObjectRejected:
        raise
    except Exception as error:  # damaged bytes: the library has many ways to say so
        words = f"{type(error).__name__}: {error}"
        raise ObjectRejected(path=path, problem=f"it cannot be parsed: {words}") from error
    _check(found, shape, path, sizes or {})
    return found


def _check(found: ObjectFile, shape: Shape, path: str, sizes: Mapping[str, int]) -> None:
    for section in shape.sections:
        if section not in found.programs:
            raise ObjectRejected(path=path, problem=f"it has no program for {section}")
    for name in shape.records:
        if name not in found.records:
            raise ObjectRejected(path=path, problem=f"its BTF does not describe {name}")
        has, wanted = found.records[name].size, sizes.get(name)
        if wanted is not None and has != wanted:
            problem = f"its {name} has {has} bytes, the reader's {wanted}: rebuild both"
            raise ObjectRejected(path=path, problem=problem)


def _read(elf: Any, image: bytes, path: str) -> ObjectFile:
    sections = {section.name: section for section in elf.iter_sections()}
    if ".BTF" not in sections:
        raise ObjectRejected(path=path, problem="it has no BTF section: it was stripped too far")
    symbols = sections[".symtab"].iter_symbols() if ".symtab" in sections else ()
    maps_index = next(
        (number for number, section in enumerate(elf.iter_sections()) if section.name == ".maps"), -1
    )
    maps = tuple(
        sorted(symbol.name for symbol in symbols if symbol["st_shndx"] == maps_index and symbol.name)
    )
    licence = sections["license"].data().rstrip(b"\0").decode() if "license" in sections else ""
    programs = tuple(
        section.name
        for section in elf.iter_sections()
        if section["sh_type"] == "SHT_PROGBITS" and section["sh_flags"] & 0x4 and section["sh_size"]
    )
    return ObjectFile(image, programs, maps, licence, dict(_records(sections[".BTF"].data(), path)))


def _records(btf: bytes, path: str) -> Iterator[tuple[str, Record]]:
    """Every named struct of the object's BTF."""
    magic, _, _, header, type_at, type_bytes, text_at, text_bytes = _BTF_HEADER.unpack_from(btf)
    if magic != _BTF_MAGIC:
        raise ObjectRejected(path=path, problem="its BTF section has another byte order or is none")
    texts = btf[header + text_at : header + text_at + text_bytes]
    at, end = header + type_at, header + type_at + type_bytes
    while at < end:
        name_at, info, size = struct.unpack_from("<III", btf, at)
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        if not 0 < kind <= _BTF_KINDS:
            raise ObjectRejected(path=path, problem=f"its BTF has types of an unknown kind ({kind})")
        if kind == _KIND_STRUCT and name_at:
            yield _text(texts, name_at), Record(size, tuple(_members(btf, at + 12, count, texts)))
        once, each = _BTF_EXTRA.get(kind, (0, 0))
        at += 12 + once + each * count


def _members(btf: bytes, at: int, count: int, texts: bytes) -> list[Member]:
    rows = [struct.unpack_from("<III", btf, at + 12 * number) for number in range(count)]
    return [Member(_text(texts, name_at), (bits & 0xFFFFFF) // 8) for name_at, _, bits in rows]


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.index(b"\0", at)].decode()
