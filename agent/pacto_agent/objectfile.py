# SPDX-License-Identifier: MIT
"""What the built BPF object holds, read with pyelftools before libbpf sees it.

Called by the tracer before it loads, and by `pacto agent inspect`. An object that does not fit this
agent's reader is refused here, with words; the kernel would take it and the numbers be wrong.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from kubectl_pacto.errors import MissingNativeParts, ObjectRejected

OBJECT_NAME: Final = "flow.bpf.o"
RECORD: Final = "pacto_flow"
PROGRAM_SECTION: Final = "tp_btf/inet_sock_set_state"

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
class ObjectFile:
    """A BPF object: its programs by section, maps, licence, and the layout of the record."""

    image: bytes
    programs: tuple[str, ...]
    maps: tuple[str, ...]
    licence: str
    record_bytes: int
    record: tuple[Member, ...]


def packaged_image() -> bytes:
    """The object that this package was built with; raises MissingNativeParts."""
    try:
        return resources.files("pacto_agent").joinpath(OBJECT_NAME).read_bytes()
    except FileNotFoundError:
        raise MissingNativeParts(missing=OBJECT_NAME) from None


def inspect_object(image: bytes, *, path: str = OBJECT_NAME, record_bytes: int | None = None) -> ObjectFile:
    """Parse and check `image`; `record_bytes` is the size of record that the reader was compiled with.

    Raises ObjectRejected naming what does not fit.
    """
    from elftools.common.exceptions import ELFError  # type: ignore[import-untyped,unused-ignore]
    from elftools.elf.elffile import ELFFile  # type: ignore[import-untyped,unused-ignore]

    try:
        elf = ELFFile(io.BytesIO(image))
        if elf["e_machine"] != "EM_BPF":
            raise ObjectRejected(path=path, problem=f"its machine is {elf['e_machine']}, not BPF")
        found = _read(elf, image, path)
    except (ELFError, struct.error, IndexError, ValueError, UnicodeDecodeError) as error:
        raise ObjectRejected(path=path, problem=f"it cannot be parsed: {error}") from error
    if PROGRAM_SECTION not in found.programs:
        raise ObjectRejected(path=path, problem=f"it has no program for {PROGRAM_SECTION}")
    if record_bytes is not None and found.record_bytes != record_bytes:
        problem = f"its {RECORD} has {found.record_bytes} bytes, the reader's {record_bytes}: rebuild both"
        raise ObjectRejected(path=path, problem=problem)
    return found


def _read(elf: Any, image: bytes, path: str) -> ObjectFile:
    sections = {section.name: section for section in elf.iter_sections()}
    if ".BTF" not in sections:
        raise ObjectRejected(path=path, problem="it has no BTF section: it was stripped too far")
    size, members = _record_of(sections[".BTF"].data(), path)
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
    return ObjectFile(image, programs, maps, licence, size, members)


def _record_of(btf: bytes, path: str) -> tuple[int, tuple[Member, ...]]:
    magic, _, _, header, type_at, type_bytes, text_at, text_bytes = _BTF_HEADER.unpack_from(btf)
    if magic != _BTF_MAGIC:
        raise ObjectRejected(path=path, problem="its BTF section has another byte order or is none")
    texts = btf[header + text_at : header + text_at + text_bytes]
    at, end = header + type_at, header + type_at + type_bytes
    while at < end:
        name_at, info, size = struct.unpack_from("<III", btf, at)
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        once, each = _BTF_EXTRA.get(kind, (0, 0))
        if kind == _KIND_STRUCT and _text(texts, name_at) == RECORD:
            return size, tuple(_members(btf, at + 12, count, texts))
        if not 0 < kind <= _BTF_KINDS:
            raise ObjectRejected(path=path, problem=f"its BTF has types of an unknown kind ({kind})")
        at += 12 + once + each * count
    raise ObjectRejected(path=path, problem=f"its BTF does not describe {RECORD}")


def _members(btf: bytes, at: int, count: int, texts: bytes) -> list[Member]:
    rows = [struct.unpack_from("<III", btf, at + 12 * number) for number in range(count)]
    return [Member(_text(texts, name_at), (bits & 0xFFFFFF) // 8) for name_at, _, bits in rows]


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.index(b"\0", at)].decode()
