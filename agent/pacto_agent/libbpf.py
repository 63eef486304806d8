# SPDX-License-Identifier: MIT
"""libbpf as cffi gives it, and its failures in words. Used by tracer and iterators alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Protocol, cast

from kubectl_pacto.errors import LoadFailed, MissingNativeParts
from pacto_agent import limits

LOG_BYTES: Final = 16384


class Libbpf(Protocol):
    """What cffi's module offers; its functions are C's."""

    ffi: Any
    lib: Any


def load_libbpf() -> Libbpf:
    """The cffi module; raises MissingNativeParts where this installation has none."""
    try:
        _libbpf = import_module("pacto_native._libbpf")
    except ImportError as error:
        raise MissingNativeParts(missing="pacto_native._libbpf") from error
    return cast(Libbpf, _libbpf)


def load_failed(bpf: Libbpf, number: int) -> LoadFailed:
    """The error for errno `number`, with what libbpf said since the last time."""
    text = bpf.ffi.new("char[]", LOG_BYTES)
    used = bpf.lib.pacto_take_log(text, LOG_BYTES)
    words = bpf.ffi.buffer(text, used)[:].decode("utf-8", "replace")
    return LoadFailed(problem=limits.explain_load(number, words, limits.read_facts()))
