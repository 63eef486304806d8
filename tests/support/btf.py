# SPDX-License-Identifier: MIT
"""Struct layouts in an object's .BTF section, read with nothing of ours: an independent witness.

Layout of the section: Documentation/bpf/btf.rst in the kernel's tree.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile

MAGIC: Final = 0xEB9F
STRUCT: Final = 4
# bytes that follow the twelve of each type, by kind: fixed, and per `vlen`
EXTRA: Final = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12)}
MORE: Final = {17: (4, 0), 19: (0, 12)}


def section(path: Path, name: str) -> bytes:
    """One section's bytes; LookupError when the object has none."""
    with path.open("rb") as file:
        found = ELFFile(file).get_section_by_name(name)
        if found is None:
            raise LookupError(f"{path} has no section {name}")
        return bytes(found.data())


def layouts(path: Path) -> dict[str, tuple[int, dict[str, int]]]:
    """Each named struct of the object: its size and the offset of each member, in bytes."""
    data = section(path, ".BTF")
    magic, _, _, header, type_at, type_bytes, string_at, _ = struct.unpack_from("=HBBIIIII", data)
    assert magic == MAGIC
    strings = data[header + string_at :]

    def name_at(offset: int) -> str:
        return strings[offset : strings.index(b"\0", offset)].decode()

    found: dict[str, tuple[int, dict[str, int]]] = {}
    at, end = header + type_at, header + type_at + type_bytes
    while at < end:
        name, info, size = struct.unpack_from("=III", data, at)
        at += 12
        kind, vlen = info >> 24 & 0x1F, info & 0xFFFF
        if kind == STRUCT and name:
            members = [struct.unpack_from("=III", data, at + 12 * i) for i in range(vlen)]
            # with the info's flag set (bit-fields) the offset is the low 24 bits
            found[name_at(name)] = size, {name_at(m[0]): (m[2] & 0xFFFFFF) // 8 for m in members}
        fixed, each = (EXTRA | MORE).get(kind, (0, 0))
        at += fixed + each * vlen
    return found
