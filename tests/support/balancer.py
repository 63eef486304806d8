# SPDX-License-Identifier: MIT
"""A socket load balancer on one cgroup, as some networks replace kube-proxy by.

balancer.bpf.c is compiled and loaded by the agent's own libbpf. What attaches it is a link that this
process alone holds: the kernel takes it away with the process, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from pacto_agent.libbpf import Libbpf, load_failed, load_libbpf
from tests.support.agents import BPF_SYSCALL

ROOT: Final = Path(__file__).parents[2]
# Where a root without a compiler gets the program from (tests/kernels); no build puts it there.
PREPARED: Final = Path(__file__).with_name("balancer.bpf.o")
BPF_LINK_CREATE: Final = 28
BPF_CGROUP_INET4_CONNECT: Final = 10

Place: TypeAlias = tuple[str, int]

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def balancing(group: Path, services: Mapping[Place, Place]) -> Iterator[None]:
    """Whatever connects from this cgroup to a service (address, port) gets to its backend."""
    with ExitStack() as undo:
        program = _load(compiled(), _table(services), undo)
        undo.callback(os.close, _attach(program, group))
        yield


def missing() -> str:
    """Why there can be no balancer here; empty when there can."""
    return "" if PREPARED.exists() or shutil.which("clang") else "not on PATH: clang"


def compiled() -> bytes:
    """The program as an object file: the prepared one, else compiled now."""
    if PREPARED.exists():
        return PREPARED.read_bytes()
    source = Path(__file__).with_name("balancer.bpf.c")
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "balancer.bpf.o"
        flags = ["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v2", f"-I{ROOT / 'bpf'}"]
        subprocess.run(["clang", *flags, "-c", source, "-o", output], check=True)
        return output.read_bytes()


def _table(services: Mapping[Place, Place]) -> bytes:
    """The program's constants."""
    return b"".join(
        socket.inet_aton(address) + struct.pack("!H2x", port)
        for entry in services.items()
        for address, port in entry
    )


def _load(image: bytes, table: bytes, undo: ExitStack) -> int:
    """The descriptor of the loaded program; the object it belongs to is closed by `undo`."""
    bpf: Libbpf = load_libbpf()
    bpf.lib.pacto_keep_log()
    loaded = bpf.lib.pacto_open(image, len(image))
    if loaded == bpf.ffi.NULL:
        raise load_failed(bpf, bpf.ffi.errno)
    undo.callback(bpf.lib.bpf_object__close, loaded)
    size = bpf.ffi.new("size_t *")
    constants = bpf.lib.bpf_object__find_map_by_name(loaded, b".rodata")
    value = bpf.lib.bpf_map__initial_value(constants, size)
    assert len(table) <= size[0], "more services than the program has room for"
    bpf.ffi.memmove(bpf.ffi.cast("char *", value), table, len(table))
    if result := bpf.lib.bpf_object__load(loaded):
        raise load_failed(bpf, -result)
    return int(bpf.lib.bpf_program__fd(bpf.lib.bpf_object__find_program_by_name(loaded, b"balance")))


def _attach(program: int, group: Path) -> int:
    """A link's descriptor: closing it detaches."""
    directory = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        attributes = (ctypes.c_uint32 * 32)(program, directory, BPF_CGROUP_INET4_CONNECT, 0)
        link = _libc.syscall(
            BPF_SYSCALL[platform.machine()], BPF_LINK_CREATE, attributes, ctypes.sizeof(attributes)
        )
    finally:
        number = ctypes.get_errno()
        os.close(directory)
    if link < 0:
        raise OSError(number, f"BPF_LINK_CREATE: {os.strerror(number)}")
    return int(link)
